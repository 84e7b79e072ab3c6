#include "tests/support/cases.h"

#include <algorithm>

#include "theseus/model/golden.h"

namespace theseus::tests {
namespace {

namespace fs = std::filesystem;

const fs::path kTree = fs::path(THESEUS_SOURCE_DIR) / "tests/golden/cases";
const fs::path kShared = fs::path(THESEUS_SOURCE_DIR) / "../shared/golden";

void append_cases(const fs::path& root, std::vector<GoldenCase>& cases) {
  for (const auto& entry : fs::directory_iterator(root)) {
    const auto golden = entry.path() / "golden.safetensors";
    const auto name = entry.path().filename().string();
    if (!fs::exists(golden) || name.starts_with("transport_")) {
      continue;
    }
    GoldenCase found{.name = name, .model = entry.path(), .adapter = {}, .golden = golden};
    if (fs::exists(entry.path() / "adapter_config.json")) {
      found.adapter = entry.path();
      found.model = name == "lora_adapter" ? root / "lora_base"
                                           : root / name.substr(0, name.rfind("_adapter"));
    }
    cases.push_back(std::move(found));
  }
}

}  // namespace

bool has_shared() {
  return fs::exists(kShared);
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  append_cases(kTree, cases);
  if (has_shared()) {
    append_cases(kShared, cases);
  }
  std::sort(cases.begin(), cases.end(), [](const auto& first, const auto& second) {
    return first.name < second.name;
  });
  return cases;
}

fs::path case_path(const std::string& name) {
  return kTree / name;
}

model::Model open_case(const std::string& name) {
  return model::Model::open(case_path(name));
}

model::Batch case_inputs(const std::string& name) {
  return model::read_inputs(checkpoint::Checkpoint::open(case_path(name) / "golden.safetensors"));
}

}  // namespace theseus::tests
