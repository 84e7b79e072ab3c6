#include "tests/support/raw_safetensors.h"

namespace theseus::tests {

std::string raw_safetensors(std::string_view header, std::string_view data) {
  return raw_safetensors(header.size(), header, data);
}

std::string raw_safetensors(
    uint64_t header_length, std::string_view header, std::string_view data) {
  std::string result;
  for (int i = 0; i < 8; ++i) {
    result.push_back(static_cast<char>(header_length >> (8 * i) & 0xff));
  }
  return result.append(header).append(data);
}

std::string one_tensor(
    std::string_view dtype, std::string_view shape, std::string_view data_offsets) {
  return std::string(R"({"t":{"dtype":)")
      .append(dtype)
      .append(R"(,"shape":)")
      .append(shape)
      .append(R"(,"data_offsets":)")
      .append(data_offsets)
      .append("}}");
}

}  // namespace theseus::tests
