#include "theseus/model/class_names.h"

#include <system_error>

#include <nlohmann/json.hpp>

#include "theseus/base/json.h"

namespace theseus::model {
namespace {

std::string name_in(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::vector<std::string> class_names(const std::filesystem::path& config, int64_t count) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(config, ignored)) {
    return {};
  }
  const auto whole = Json::parse_file(config);
  std::vector<std::string> names;
  for (const char* key : {"id2label", "label_names"}) {
    const auto found = whole.raw().is_object() ? whole.raw().find(key) : whole.raw().end();
    if (!names.empty() || found == whole.raw().end() ||
        static_cast<int64_t>(found->size()) != count) {
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto number = std::to_string(i);
      if (found->is_array()) {
        names.push_back(name_in(found->at(static_cast<size_t>(i))));
      } else if (found->is_object() && found->contains(number)) {
        names.push_back(name_in(found->at(number)));
      }
    }
    if (static_cast<int64_t>(names.size()) != count) {
      names.clear();
    }
  }
  return names;
}

}  // namespace theseus::model
