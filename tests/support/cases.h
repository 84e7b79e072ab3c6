#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/model/model.h"

namespace theseus::tests {

// A folder with golden.safetensors and the model it was recorded from.
struct GoldenCase {
  std::string name;
  std::filesystem::path model;
  std::filesystem::path adapter;  // or empty
  std::filesystem::path golden;
};

// The cases in the tree and, when it is there, in ../shared.
std::vector<GoldenCase> golden_cases();
bool has_shared();

// The model of one case in the tree.
std::filesystem::path case_path(const std::string& name);
model::Model open_case(const std::string& name);
model::Batch case_inputs(const std::string& name);

// A folder for each kind of tokenizer, with what transformers makes of texts.json.
inline const std::filesystem::path kTokenizerFixtures =
    std::filesystem::path(THESEUS_SOURCE_DIR) / "tests/fixtures/data/tokenizers";

}  // namespace theseus::tests
