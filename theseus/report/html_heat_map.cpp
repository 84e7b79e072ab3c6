#include <algorithm>

#include <fmt/format.h>

#include "theseus/report/escape.h"
#include "theseus/report/html.h"

// Fields of one colour, stronger where one should look; the strength is an opacity, so that it works
// on light and on dark paper.
namespace theseus::report {
namespace {

constexpr int kFieldHeight = 18;
constexpr int kFirstRow = 20;
constexpr double kLetter = 6.7;  // of 11 px monospaced
constexpr size_t kLongestName = 26;

// The end says more than the beginning: "...self_attn.q_proj.weight".
std::string cut(const std::string& name) {
  if (name.size() <= kLongestName) {
    return name;
  }
  auto begin = name.size() - kLongestName + 1;
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xc0) == 0x80) {
    ++begin;  // not into the middle of a letter
  }
  return "\u2026" + name.substr(begin);
}

// Whatever is not at the faint end can be told from it.
double opacity(double strength) {
  return strength == 0 ? 0.05 : 0.15 + 0.85 * strength;
}

class Drawing {
 public:
  explicit Drawing(const HeatMap& map) : map_(map) {
    const auto columns = static_cast<int>(map.columns.size());
    width_ = std::clamp(360 / columns, 14, 36);
    size_t longest = 0;
    for (const auto& row : map.rows) {
      longest = std::max(longest, std::min(row.size(), kLongestName));
    }
    left_ = static_cast<int>(kLetter * static_cast<double>(longest)) + 10;
  }

  std::string svg() const {
    const auto width = left_ + width_ * static_cast<int>(map_.columns.size()) + 8;
    const auto height = kFirstRow + kFieldHeight * static_cast<int>(map_.rows.size()) + 2;
    const auto label = fmt::format(
        "{}: heat map of {} rows and {} columns; the table has the numbers", map_.caption,
        map_.rows.size(), map_.columns.size());
    return fmt::format(
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{2}\">"
        "<svg class=\"heat\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
        "aria-label=\"{2}\">\n{3}{4}</svg></div>\n",
        width, height, html_text(label), heads(), fields());
  }

 private:
  std::string heads() const {
    // Narrow columns cannot all be labelled.
    const size_t every = width_ >= 18 ? 1 : 5;
    std::string text;
    for (size_t j = 0; j < map_.columns.size(); ++j) {
      if (j % every != 0 && map_.columns[j] != "-") {
        continue;
      }
      text += fmt::format(
          "<text x=\"{}\" y=\"14\" text-anchor=\"middle\">{}</text>\n",
          left_ + width_ * static_cast<int>(j) + width_ / 2, html_text(map_.columns[j]));
    }
    return text;
  }

  std::string fields() const {
    std::string text;
    for (size_t i = 0; i < map_.rows.size(); ++i) {
      const auto top = kFirstRow + kFieldHeight * static_cast<int>(i);
      text += fmt::format(
          "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}<title>{}</title></text>\n", left_ - 6,
          top + 13, html_text(cut(map_.rows[i])), html_text(map_.rows[i]));
      for (size_t j = 0; j < map_.columns.size(); ++j) {
        text += field(i, j, top);
      }
    }
    return text;
  }

  std::string field(size_t i, size_t j, int top) const {
    const auto& value = map_.values[i][j];
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}><title>{}, {} {}: {}</title>"
        "</rect>\n",
        left_ + width_ * static_cast<int>(j), top, width_ - 2, kFieldHeight - 2,
        value ? fmt::format("fill-opacity=\"{:.2f}\"", opacity(map_.scale.strength(*value)))
              : "class=\"none\"",
        html_text(map_.rows[i]), html_text(map_.across), html_text(map_.columns[j]),
        value ? number_text(value) : "no value");
  }

  const HeatMap& map_;
  int width_ = 0;  // of a field with its gap
  int left_ = 0;   // of the first one
};

std::string legend(const HeatMap& map) {
  constexpr int kSteps = 6;
  std::string swatches;
  for (int i = 0; i < kSteps; ++i) {
    swatches += fmt::format(
        "<rect x=\"{}\" y=\"1\" width=\"14\" height=\"12\" fill-opacity=\"{:.2f}\"/>", 1 + 16 * i,
        opacity(static_cast<double>(i) / (kSteps - 1)));
  }
  return fmt::format(
      "<p class=\"legend\">{} <svg class=\"heat\" width=\"98\" height=\"14\" aria-hidden=\"true\">"
      "{}</svg> {}{}. Stronger: {}. Rows: {}s, columns: {}s{}.</p>\n",
      number_text(map.scale.faint), swatches, number_text(map.scale.strong),
      map.scale.log ? " (logarithmic)" : "", html_text(map.meaning), html_text(map.corner),
      html_text(map.across), map.remark.empty() ? "" : "; " + html_text(map.remark));
}

}  // namespace

std::string html_heat_map(const HeatMap& map) {
  return fmt::format(
      "<figure>\n<figcaption>{}</figcaption>\n{}{}{}</figure>\n", html_text(map.caption),
      Drawing(map).svg(), legend(map), html_table(as_table(map)));
}

}  // namespace theseus::report
