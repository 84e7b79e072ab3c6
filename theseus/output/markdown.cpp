#include "theseus/output/markdown.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "theseus/base/text.h"

namespace theseus::output {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string clean(std::string_view text) {
  return nlohmann::json::parse(json_text(without_controls(text))).get<std::string>();
}

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kMeaning = "\\`*_[]<>|~$&";
  std::string result;
  for (const char character : clean(text)) {
    if (kMeaning.find(character) != std::string_view::npos) {
      result.push_back('\\');
    }
    result.push_back(character == '\n' ? ' ' : character);
  }
  return result;
}

std::string markdown_code(std::string_view text) {
  const auto code = clean(text);
  size_t longest = 2;
  size_t run = 0;
  for (const char character : code) {
    run = character == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fence + "\n" + code + (code.ends_with('\n') ? "" : "\n") + fence + "\n";
}

std::string yaml_text(std::string_view text) {
  // A JSON string is one of YAML, but for U+0080 to U+009F, which YAML wants escaped.
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  const auto json = json_text(clean(text));
  for (size_t i = 0; i < json.size(); ++i) {
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : '"');
    if (json[i] == '\xc2' && next < 0xa0) {
      result.append("\\x").append(1, kHex[next >> 4]).append(1, kHex[next & 15]);
      ++i;
    } else {
      result.push_back(json[i]);
    }
  }
  return result;
}

}  // namespace theseus::output
