#include "theseus/model/parameter.h"

#include <algorithm>

namespace theseus::model {
namespace {

std::string with_index(const std::string& path, const std::string& index) {
  for (size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('.', begin), path.size());
    const bool number = end > begin && std::all_of(
                                           path.begin() + static_cast<int64_t>(begin),
                                           path.begin() + static_cast<int64_t>(end),
                                           [](char c) { return c >= '0' && c <= '9'; });
    if (number) {
      return path.substr(0, begin) + index + path.substr(end);
    }
    begin = end + 1;
  }
  return path;
}

}  // namespace

std::string role_of(const std::string& path) {
  return with_index(path, "*");
}

std::string in_block(const std::string& path, int64_t block) {
  return with_index(path, std::to_string(block));
}

}  // namespace theseus::model
