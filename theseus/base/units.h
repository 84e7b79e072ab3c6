#pragma once

#include <cstdint>
#include <string>

namespace theseus {

std::string bytes_text(int64_t bytes);  // "12.3 MB", decimal as disks are sold
std::string count_text(int64_t count);  // "1,234,567"

}  // namespace theseus
