#pragma once

#include <filesystem>
#include <string>

#include "theseus/model/model.h"

namespace theseus::output {

// The base that a tuned model names, where that is a directory here.
struct NamedBase {
  std::filesystem::path path;
  std::string note;  // which it is, and who says so
};

// An adapter's adapter_config.json names it as base_model_name_or_path, a model's config.json as _name_or_path. What
// they name is looked for as it is written and, when relative, from the directory of the tuned model.
// Throws InputError, saying that --source is required, when nothing is named or it is not here.
NamedBase named_base(const std::filesystem::path& tuned);

// What to say where the base that `tuned` names is another model than `source`: a directory here with other weights, or
// plainly another name. Empty when it is the same, or cannot be told.
std::string note_on_another_base(const std::filesystem::path& tuned, const model::Model& source);

}  // namespace theseus::output
