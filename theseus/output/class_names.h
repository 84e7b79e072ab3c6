#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "theseus/output/opened.h"

namespace theseus::output {

// Writes names of classes into a config as the libraries of Hugging Face do (id2label, label2id), or as label_names where `timm`.
void set_class_names(
    nlohmann::ordered_json& config, const std::vector<std::string>& names, bool timm);

// How many classes a head has that the plan carries; 0: none is carried.
int64_t carried_classes(const std::vector<transport::Disposition>& plan);

// Gives the config in `directory`, a copy of the target's, the names of the classes of a head that was carried: `beside`
// are those of a head beside an encoder. Returns what a reader should know.
std::vector<std::string> keep_class_names(
    const JobOptions& options,
    const Opened& opened,
    const std::vector<transport::Disposition>& plan,
    const std::vector<std::string>& beside,
    const std::filesystem::path& directory);

}  // namespace theseus::output
