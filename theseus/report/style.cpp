#include "theseus/report/html.h"

namespace theseus::report {

const std::string_view kStyle = R"(:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d2125; --soft: #5a636d; --rule: #d8dce1; --shade: #f1f3f5;
  --line: #1a5fb4; --mark: #b5420b; --best: #e4f3e6; --free: #7a3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --ink: #e6e8ea; --soft: #a0a9b3; --rule: #363c43; --shade: #1e2328;
    --line: #78b0f0; --mark: #ff9350; --best: #1d3a24; --free: #cf9cf0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 68rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
p { max-width: 44rem; margin: .6rem 0; }
a { color: var(--line); }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; margin: 0; padding: 0; }
li { margin: .25rem 0; max-width: 44rem; }
nav li { margin: 0; }
figure { margin: 1rem 0 1.75rem; min-width: 0; max-width: 100%; }
figcaption, caption { font-weight: 600; text-align: left; margin-bottom: .4rem; }
caption { padding-bottom: .4rem; }
caption span { display: block; width: fit-content; max-width: calc(100vw - 2rem); position: sticky; left: 0; }
.wide { overflow-x: auto; max-width: 100%; margin: .5rem 0 1rem; }
.wide:focus-visible, summary:focus-visible, a:focus-visible {
  outline: 2px solid var(--line); outline-offset: 2px;
}
table { border-collapse: collapse; font-size: .9rem; }
th, td {
  padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); overflow-wrap: normal;
}
td:not(.number), tbody th { overflow-wrap: anywhere; min-width: 6rem; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 400; min-width: 9.5rem; }
tbody th, thead th:first-child { position: sticky; left: 0; background: var(--paper); }
.number { text-align: right; font-variant-numeric: tabular-nums; padding-left: .7rem; }
.number small { display: block; white-space: nowrap; }
td.best { background: var(--best); }
.sign { margin-right: .25em; }
small { color: var(--soft); font-size: .82rem; }
details { margin: .25rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .85rem; }
svg text { fill: var(--soft); font: 11px ui-monospace, monospace; }
svg.curve { display: block; width: 100%; max-width: 38rem; height: auto; }
@media (max-width: 32rem) { svg.curve text { font-size: 14px; } }
.grid { stroke: var(--rule); stroke-width: .75; }
.axis { stroke: var(--soft); }
.line { fill: none; stroke: var(--line); stroke-width: 2; }
.of1 { stroke: var(--mark); stroke-dasharray: 8 3; }
.of2 { stroke: var(--free); stroke-dasharray: 3 3; }
.of3 { stroke: var(--soft); stroke-dasharray: 10 3 2 3; }
.band { fill: var(--line); fill-opacity: .18; }
.bar { stroke: var(--line); stroke-opacity: .5; stroke-width: 2; }
.dot { fill: var(--line); }
.top { fill: none; stroke: var(--mark); stroke-width: 2; }
.base { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 7 4; }
.keys { display: flex; flex-wrap: wrap; gap: 0 1.4rem; list-style: none; margin: .3rem 0; padding: 0; font-size: .85rem; }
.keys svg { width: 24px; height: 14px; margin-right: .4rem; vertical-align: -2px; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media print {
  :root {
    color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --rule: #bbb; --line: #1a5fb4;
    --mark: #b5420b; --best: #e4f3e6; --free: #7a3fa0;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  nav { display: none; }
  .wide { overflow: visible; }
  figure, tr { break-inside: avoid; }
  h2, caption, figcaption { break-after: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
)";

}  // namespace theseus::report
