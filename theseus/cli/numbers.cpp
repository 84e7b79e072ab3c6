#include "theseus/cli/numbers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/part.h"

namespace theseus::cli {

std::string number_error(const std::string& text) {
  size_t used = 0;
  try {
    [[maybe_unused]] const auto number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  return used == text.size() && used > 0 ? "" : "'" + text + "' is not a number";
}

std::function<std::string(const std::string&)> number_from(double low, double high) {
  return [low, high](const std::string& text) {
    if (const auto error = number_error(text); !error.empty()) {
      return error;
    }
    const auto number = std::stod(text);
    return !std::isfinite(number) ? "'" + text + "' is not a finite number"
           : number >= low && number <= high
               ? ""
               : fmt::format("'{}' is not from {:g} to {:g}", text, low, high);
  };
}

std::string seconds_error(const std::string& text) {
  return number_from(0, 1e9)(text);
}

int64_t parse_bytes(const std::string& text) {
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  auto unit = text.substr(used);
  std::erase(unit, ' ');
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  if (unit.ends_with('B')) {
    unit.pop_back();
  }
  const bool binary = unit.ends_with('I');
  if (binary) {
    unit.pop_back();
  }
  constexpr std::string_view kUnits = "KMGT";
  const auto place = unit.size() == 1 ? kUnits.find(unit) : std::string_view::npos;
  const bool known = place != std::string_view::npos || (unit.empty() && !binary);
  const auto power = unit.empty() ? 0.0 : static_cast<double>(place) + 1;
  const auto bytes = known ? number * std::pow(binary ? 1024.0 : 1000.0, power) : 0;
  require(
      used > 0 && bytes >= 1 && bytes < 0x1p62, "'", printable(text),
      "' is not a size; expected bytes, or a number above 0 and a unit, as in 8GB, 1.5G or 512MiB "
      "(k, M, G and T count by 1000, Ki, Mi, Gi and Ti by 1024, each with or without B)");
  return static_cast<int64_t>(bytes);
}

std::string size_error(const std::string& text) {
  try {
    parse_bytes(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string whole_number_error(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return !digits            ? "'" + text + "' is not a whole number from 0 on"
         : text.size() > 18 ? "'" + text + "' is too large; expected at most 18 digits"
                            : "";
}

std::string strength_error(const std::string& text) {
  constexpr double kMost = 1e6;
  if (const auto error = number_error(text); !error.empty()) {
    return error;
  }
  const auto number = std::stod(text);
  return !std::isfinite(number)      ? "'" + text + "' is not a finite number"
         : std::abs(number) <= kMost ? ""
                                     : "'" + text + "' is no strength; expected at most 1e6";
}

std::string output_strength_error(const std::string& text) {
  const auto error = strength_error(text);
  return error.empty() && std::stod(text) == 0
             ? "a strength of 0 leaves nothing of the update: the output would be the base model"
             : error;
}

std::string split_error(const std::string& text) {
  try {
    if (text.empty() || text == "train" || text == "val" || text == "test" ||
        data::find_part(text)) {
      return "";
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "unknown split '" + printable(text) +
         "'; a split is train, val or test, or a part of one, as in train[0:80]";
}

}  // namespace theseus::cli
