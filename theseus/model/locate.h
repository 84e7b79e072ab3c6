#pragma once

#include <filesystem>
#include <string>

#include "theseus/model/weights.h"

namespace theseus::model {

// Where a model's parts were found, before any of them is read.
struct Location {
  std::string family;             // name in all_families()
  std::filesystem::path config;   // config.json, open_clip_config.json
  std::filesystem::path weights;  // weights file, index, or directory to look in
};

struct OpenOptions {
  std::string family;            // empty: told by the files
  std::filesystem::path config;  // empty: beside the weights
  Placement placement;
};

// A directory's family is told by its config files. `path` may also be a weights file with its
// config beside it or in options.config. Throws InputError when nothing tells (listing what is known)
// or when two families claim it (then options.family decides).
Location locate(const std::filesystem::path& path, const OpenOptions& options = {});

// Whether locate() would find a config; false for a bare state dict.
bool has_config(const std::filesystem::path& path, const OpenOptions& options = {});

}  // namespace theseus::model
