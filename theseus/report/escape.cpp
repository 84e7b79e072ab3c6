#include "theseus/report/escape.h"

#include <nlohmann/json.hpp>

#include "theseus/base/text.h"

namespace theseus::report {
namespace {

// JSON text cannot hold anything but UTF-8.
std::string utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string result;
  for (const char character : utf8(without_controls(text))) {
    switch (character) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result.push_back(character);
    }
  }
  return result;
}

}  // namespace theseus::report
