#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace theseus::model {

// What a model's config calls the classes of a head with `count` of them: id2label of transformers, or label_names
// of timm. Empty where it does not name every one of them, or names another number. Throws InputError when the config is no JSON.
std::vector<std::string> class_names(const std::filesystem::path& config, int64_t count);

}  // namespace theseus::model
