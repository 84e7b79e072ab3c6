#include "theseus/base/units.h"

#include <cstdio>
#include <iterator>

namespace theseus {

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) {
    return std::to_string(bytes) + " bytes";
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string rate_text(double per_second, const std::string& unit) {
  if (unit == "bytes") {
    return bytes_text(static_cast<int64_t>(per_second)) + "/s";
  }
  char number[32];
  std::snprintf(number, sizeof number, "%.3g ", per_second);
  return number + unit + "/s";
}

std::string duration_text(double seconds) {
  const double minutes = seconds / 60, hours = minutes / 60;
  char text[32];
  if (seconds < 99.5) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else if (minutes < 99.5) {
    std::snprintf(text, sizeof text, "%.0f minutes", minutes);
  } else {
    std::snprintf(text, sizeof text, "%.1f hours", hours);
  }
  return text;
}

std::string count_text(int64_t count) {
  const auto digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      text += ',';
    }
    text += digits[i];
  }
  return text;
}

}  // namespace theseus
