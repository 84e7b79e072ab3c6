#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "theseus/model/model.h"

namespace theseus::output {

// Where a model's side files lie; empty: its weights are a file, and its config is elsewhere.
std::filesystem::path directory_of(const model::Location& location);

constexpr int64_t kLargestSideFile = int64_t{64} << 20;

struct SideFiles {
  std::vector<std::string> copied;    // sorted
  std::vector<std::string> left_out;  // "name: why", for those that a reader may miss
};

// Copies what a model needs besides its weights: config, tokenizer, preprocessor, licence and whatever
// else lies in the target's directory, links followed. Left out are weights of any framework, indexes,
// hidden files, directories but those that modules.json of sentence-transformers names, README.md, an adapter's config, files larger than kLargestSideFile, and
// the names in `ours` and those already in `directory`: nothing is overwritten.
//
// The config that the model was opened with comes under the name that its library looks for, and under
// its own where that is another. It comes alone when the weights are a file in another directory.
// Throws InputError when a file cannot be read or written.
SideFiles copy_side_files(
    const model::Model& target,
    const std::filesystem::path& directory,
    const std::set<std::string>& ours = {});

// Of the files that copy_side_files would copy into an empty directory, by their names and contents.
std::string hash_of_copied_files(const model::Model& target, const std::set<std::string>& ours);

// Of the files that copy_side_files would copy into an empty directory.
int64_t bytes_of_side_files(const model::Model& target);

}  // namespace theseus::output
