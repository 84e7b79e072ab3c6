#include "theseus/report/html.h"

#include <fmt/format.h>

#include "theseus/report/escape.h"
#include "theseus/report/report.h"

namespace theseus::report {
namespace {

std::string body_cell(const Cell& cell, const Column& column, bool head) {
  auto text = html_text(cell.text);
  if (cell.best) {
    text = "<b><span class=\"sign\" aria-hidden=\"true\">\u2605</span>" + text +
           "</b><span class=\"unseen\"> (best)</span>";
  }
  for (const auto& aside : cell.asides) {
    text += " <small>" + html_text(aside) + "</small>";
  }
  std::string classes = column.number ? "number" : "";
  classes += cell.best ? " best" : "";
  return fmt::format(
      "<{}{}>{}</{}>", head ? "th scope=\"row\"" : "td",
      classes.empty() ? "" : " class=\"" + classes + "\"", text, head ? "th" : "td");
}

std::string rows_of(const Table& table) {
  std::string text;
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      text += body_cell(row[i], table.columns[i], i == 0);
    }
    text += "</tr>\n";
  }
  return text;
}

struct HtmlWriter {
  std::string& text;

  void operator()(const Paragraph& paragraph) const {
    text += "<p>" + html_text(paragraph.text) + "</p>\n";
  }
  void operator()(const Listing& listing) const {
    text += "<ul>\n";
    for (const auto& item : listing.items) {
      text += "<li>" + html_text(item) + "</li>\n";
    }
    text += "</ul>\n";
  }
  void operator()(const Table& table) const { text += html_table(table); }
  void operator()(const Curve& curve) const { text += html_curve(curve); }
  void operator()(const Lines& lines) const { text += html_lines(lines); }
};

std::string parts_of(const Section& section) {
  std::string text;
  for (const auto& part : section.parts) {
    std::visit(HtmlWriter{text}, part);
  }
  return text;
}

std::string contents_of(const Page& page) {
  std::string text = "<nav aria-label=\"Contents\"><ul>\n";
  for (size_t i = 0; i < page.sections.size(); ++i) {
    text += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", i, html_text(page.sections[i].title));
  }
  return text + "</ul></nav>\n";
}

}  // namespace

std::string html_table(const Table& table) {
  const auto caption = html_text(table.caption);
  auto text = fmt::format(
      "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table>"
      "<caption><span>{0}</span></caption>\n<thead><tr>",
      caption);
  for (const auto& column : table.columns) {
    text += fmt::format(
        "<th scope=\"col\"{}>{}</th>", column.number ? " class=\"number\"" : "",
        html_text(column.title));
  }
  text += "</tr></thead>\n<tbody>\n" + rows_of(table) + "</tbody></table></div>\n";
  return table.fold.empty()
             ? text
             : fmt::format(
                   "<details><summary>{}{}</summary>\n{}</details>\n", html_text(table.fold),
                   table.fold == table.caption
                       ? ""
                       : fmt::format("<span class=\"unseen\">: {}</span>", caption),
                   text);
}

std::string as_html(const Page& page) {
  constexpr size_t kFew = 3;
  const auto title = html_text(page.title);
  // The policy is a second lock: even text that was not escaped could not run or call out.
  auto text = fmt::format(
      "<!doctype html>\n{}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header><h1>{}</h1></header>\n",
      kMark, title, kStyle, title);
  if (page.sections.size() > kFew) {
    text += contents_of(page);
  }
  text += "<main>\n";
  for (size_t i = 0; i < page.sections.size(); ++i) {
    text += fmt::format(
        "<section aria-labelledby=\"s{0}\">\n<h2 id=\"s{0}\">{1}</h2>\n{2}</section>\n", i,
        html_text(page.sections[i].title), parts_of(page.sections[i]));
  }
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace theseus::report
