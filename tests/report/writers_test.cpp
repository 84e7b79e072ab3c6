#include <gtest/gtest.h>

#include "theseus/report/escape.h"
#include "theseus/report/html.h"
#include "theseus/report/report.h"

#include "tests/report/samples.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::report {
namespace {

using tests::expect_parts;

size_t times(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

Page whole_page() {
  return make_page(
      {read_document(kTransportSample, "theseus.json"),
       read_document(kEvaluateSample, "evaluate.json"), read_document(kSweepSample, "sweep.json"),
       read_document(kCompareSample, "compare.json"),
       read_document(kDiagnoseSample, "diagnose.json")});
}

TEST(Escape, Html) {
  EXPECT_EQ(html_text("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(html_text("h\xc3\xa9"), "h\xc3\xa9");
  EXPECT_EQ(html_text("\xff\x1b"), "\xef\xbf\xbd\\x1b");
}

// Every text that a file can hold, in every place.
TEST(Html, HostileTextsDoNothing) {
  const std::string bad = R"(</title></style><script>x</script><img src=x onerror=x>\" onload=\"x)";
  const auto fill = [&](std::string text) {
    for (auto at = text.find('@'); at != std::string::npos; at = text.find('@', at + bad.size())) {
      text.replace(at, 1, bad);
    }
    return read_document(text, "@<script>.json");
  };
  const auto page = make_page(
      {fill(R"({"theseus": "@", "options": {"@": "@"}, "source": {"path": "@"},
                "tuned": {"path": "@"}, "target": {"path": "@"}, "method": "@", "write": "@",
                "totals": {"@": 1}, "update": {"left_behind": [{"parameter": "@", "reason": "@"}]},
                "depth": {"mode": "@", "pairs": [{"source": 9, "target": 0}]},
                "parameters": [{"parameter": "@", "action": "@", "reason": "@", "norm_error": 1}],
                "spaces": [{"space": "@.0.q", "rank": 1, "of": 2, "condition": 3}],
                "notes": ["@"], "@": "@"})"),
       fill(R"({"kind": "evaluate", "value": 1, "model": "@", "data": "@", "split": "@",
                "task": "@", "metric": "@"})"),
       fill(R"({"kind": "sweep", "metric": "@", "model": "@", "data": "@",
                "curve": [{"alpha": 0, "value": 1}]})"),
       fill(R"({"kind": "compare", "columns": ["@"], "metric": "@",
                "rows": [{"method": "@", "shots": "@", "cells": {"@": {"value": 1}}}]})"),
       fill(R"({"kind": "diagnose", "verdict": "@", "reasons": ["@"], "distance": {"@": "@"}})")});
  const auto html = as_html(page);
  EXPECT_EQ(times(html, "<script"), 0U);
  EXPECT_EQ(times(html, "<img"), 0U);
  EXPECT_EQ(times(html, "</style>"), 1U);
  EXPECT_EQ(times(html, "\" onload"), 0U);
  EXPECT_GT(times(html, "&lt;script&gt;"), 30U);
  const auto markdown = as_markdown(page);
  EXPECT_EQ(times(markdown, "<script") - times(markdown, "\\<script"), 0U);
}

TEST(Html, NeedsNothingElse) {
  const auto html = as_html(whole_page());
  for (const char* word : {"http://", "https://", "<script", "<link", "@import", "url(", " src="}) {
    EXPECT_EQ(times(html, word), 0U) << word;
  }
  expect_parts(
      html, "default-src 'none'", "lang=\"en\"", "charset=\"utf-8\"", "width=device-width",
      "prefers-color-scheme: dark", "@media print");
}

TEST(Html, PicturesHaveNamesAndTables) {
  const auto html = as_html(whole_page());
  EXPECT_EQ(times(html, "<figure>"), times(html, "role=\"img\" aria-label=\""));
  EXPECT_EQ(times(html, "<table>"), times(html, "<caption><span>"));
  EXPECT_GE(times(html, "<details>"), times(html, "<figure>"));
  EXPECT_EQ(times(html, "<th>"), 0U);
  expect_parts(
      html, "<title>alpha 0.5: 0.6125 (0.59 to 0.63)</title>", "class=\"band\"", "best: alpha 0.5",
      "without the update: 0.5");
}

TEST(Html, BestIsSaidInWords) {
  const auto html = as_html(make_page({read_document(kCompareSample, "c")}));
  EXPECT_EQ(times(html, "<span class=\"unseen\"> (best)</span>"), 2U);
}

TEST(Html, CurvesOfAnySize) {
  for (const auto& points : std::vector<std::vector<Point>>{
           {{.alpha = 1, .value = 0}},
           {{.alpha = 0, .value = 1e17}, {.alpha = 1, .value = 1e17 + 64}},
           {{.alpha = 0, .value = -1e308}, {.alpha = 1, .value = 1e308}},
           {{.alpha = 0, .value = 1, .low = 0, .high = 2}, {.alpha = 1, .value = 2}}}) {
    const auto html = html_curve({.metric = "loss", .points = points});
    EXPECT_EQ(times(html, "<circle class=\"dot\""), points.size());
    EXPECT_LT(html.size(), 20000U);
  }
}

TEST(Markdown, SaysTheSameNumbers) {
  const auto text = as_markdown(whole_page());
  expect_parts(
      text, "# theseus report", "| 0.5 | **0.6125** | 0.59 | 0.63 | best |",
      "| visual.1.a | 12 | 48 | 36 | - | 1e-12 | 3e-08 |", "**0.75** (alpha 0.5)",
      "0.5 (0.4 to 0.6)", "| blocks.0.fc.weight | 2 | 1.5 | -0.25 | 0.001 |", "accuracy 0.7132",
      "\\<script\\>alert(1)\\</script\\>", "| tuned.fingerprint | xxh3:22 |");
  EXPECT_TRUE(text.ends_with('\n'));
  EXPECT_FALSE(text.ends_with("\n\n"));
}

TEST(Report, KnowsItsOwn) {
  const tests::ScratchDir scratch;
  const auto page = whole_page();
  EXPECT_TRUE(is_report(scratch.file("a.html", as_html(page))));
  EXPECT_TRUE(is_report(scratch.file("a.md", as_markdown(page))));
  EXPECT_FALSE(is_report(scratch.file("b.html", "<!doctype html><p>mine")));
  EXPECT_FALSE(is_report(scratch.file("c", "")));
  EXPECT_FALSE(is_report(scratch / "none"));
}

TEST(Report, SameDocumentsSameBytes) {
  EXPECT_EQ(as_html(whole_page()), as_html(whole_page()));
}

}  // namespace
}  // namespace theseus::report
