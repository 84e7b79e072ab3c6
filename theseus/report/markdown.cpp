#include "theseus/output/markdown.h"

#include "theseus/base/text.h"
#include "theseus/report/escape.h"
#include "theseus/report/report.h"

namespace theseus::report {
namespace {

using output::markdown_text;

std::string cell_text(const Cell& cell) {
  const auto text = markdown_text(cell.text);
  const auto marked = cell.best && !text.empty() ? "**" + text + "**" : text;
  return cell.asides.empty()
             ? marked
             : marked + " (" + markdown_text(joined(cell.asides, cell.asides.size())) + ")";
}

struct MarkdownWriter {
  std::string& text;

  void operator()(const Paragraph& paragraph) const {
    text += markdown_text(paragraph.text) + "\n\n";
  }

  void operator()(const Listing& listing) const {
    for (const auto& item : listing.items) {
      text += "- " + markdown_text(item) + "\n";
    }
    text += "\n";
  }

  void operator()(const Table& table) const {
    if (!table.caption.empty()) {
      text += "### " + markdown_text(table.caption) + "\n\n";
    }
    std::string rule = "|";
    text += "|";
    for (const auto& column : table.columns) {
      text.append(" ").append(markdown_text(column.title)).append(" |");
      rule += column.number ? "---:|" : "---|";
    }
    text += "\n" + rule + "\n";
    for (const auto& row : table.rows) {
      text += "|";
      for (const auto& cell : row) {
        text.append(" ").append(cell_text(cell)).append(" |");
      }
      text += "\n";
    }
    text += "\n";
  }

  void operator()(const Curve& curve) const {
    (*this)(as_table(curve));
    if (curve.base) {
      (*this)(Paragraph{"Without the update: " + number_text(curve.base) + "."});
    }
  }

  void operator()(const Lines& lines) const { (*this)(as_table(lines)); }
};

}  // namespace

std::string as_markdown(const Page& page) {
  std::string text = std::string(kMark) + "\n# " + markdown_text(page.title) + "\n\n";
  for (const auto& section : page.sections) {
    text += "## " + markdown_text(section.title) + "\n\n";
    for (const auto& part : section.parts) {
      std::visit(MarkdownWriter{text}, part);
    }
  }
  text.erase(text.find_last_not_of('\n') + 1);
  return text + "\n";
}

}  // namespace theseus::report
