#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "theseus/output/opened.h"

namespace theseus::output {

// Of a tune whose embedding has more rows than the source's.
struct AddedTokens {
  std::vector<std::string>
      names;          // by the tuned model's tokenizer files; empty where they do not say
  bool fits = false;  // the target has the source's vocabulary, and rows for these
  std::vector<std::string> notes;  // what was done, and what the user must do
};

// Nothing of the kind: no notes.
AddedTokens added_tokens(const JobOptions& options, const Opened& opened);

// Whether copy_tokenizer() copies a file of this name.
bool is_tokenizer_file(const std::string& name);

// Copies the tuned model's tokenizer files and chat template into `directory`, which has none yet.
void copy_tokenizer(const std::filesystem::path& tuned, const std::filesystem::path& directory);

}  // namespace theseus::output
