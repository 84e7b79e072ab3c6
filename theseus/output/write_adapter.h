#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "theseus/update/adapter.h"

namespace theseus::output {

struct AdapterOptions {
  std::string task;        // PEFT's task_type; empty: none
  std::string base_model;  // base_model_name_or_path; empty: none
  // Paths of all the model's linear modules. PEFT would also adapt a module whose path ends in an
  // adapted one's (OpenCLIP's visual.transformer... and transformer...): those are excluded by name.
  std::vector<std::string> modules;
  // Whole tensors that replace the base's, by name: PEFT's modules_to_save.
  std::map<std::string, at::Tensor> saved;
};

// Writes a PEFT LoRA adapter (adapter_model.safetensors, then adapter_config.json) into `directory`,
// which must exist. All modules get the largest rank, the others filled up with zeros, and one
// lora_alpha. When all scales are equal the factors stay as they are; otherwise each scale is
// multiplied into lora_B. Factors keep their dtype, but for a lora_B in half precision that a scale
// cannot be multiplied into exactly: that one becomes float32.
// Throws InputError when it cannot be written, InternalError for factors that do not fit together,
// NumericError naming a module that is not finite.
void write_adapter(
    const std::filesystem::path& directory,
    const std::map<std::string, update::LowRank>& modules,
    const AdapterOptions& options = {});

}  // namespace theseus::output
