#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace theseus::tests {

// A safetensors file of any header text and any data, right or wrong.
std::string raw_safetensors(std::string_view header, std::string_view data);

// The same with a length field that need not be the header's.
std::string raw_safetensors(uint64_t header_length, std::string_view header, std::string_view data);

// A header of one tensor 't' from the raw JSON of its fields.
std::string one_tensor(
    std::string_view dtype, std::string_view shape, std::string_view data_offsets);

}  // namespace theseus::tests
