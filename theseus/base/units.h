#pragma once

#include <cstdint>
#include <string>

namespace theseus {

std::string bytes_text(int64_t bytes);      // "12.3 MB", decimal as disks are sold
std::string duration_text(double seconds);  // "12 s", "3 minutes", "1.5 hours"
std::string count_text(int64_t count);      // "1,234,567"

// "12.5 MB/s" or "12.5 steps/s"; bytes where `unit` is "bytes".
std::string rate_text(double per_second, const std::string& unit);

}  // namespace theseus
