#pragma once

#include <string>
#include <string_view>

#include "theseus/report/page.h"

// Pieces of the page.
namespace theseus::report {

extern const std::string_view kStyle;

std::string html_table(const Table& table);
std::string html_curve(const Curve& curve);
std::string html_lines(const Lines& lines);

}  // namespace theseus::report
