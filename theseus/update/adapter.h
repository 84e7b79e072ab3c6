#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace theseus::update {

// delta = scale * up down, of a linear weight [out, in].
struct LowRank {
  at::Tensor up;    // [out, r]  PEFT's lora_B
  at::Tensor down;  // [r, in]   PEFT's lora_A
  double scale = 1;

  at::Tensor product() const;  // [out, in]
  double norm() const;         // |product()|_F, from r x r products
};

// A PEFT LoRA adapter. Module paths are the ones of the model it was trained on, without PEFT's
// "base_model.model." in front.
struct Adapter {
  std::filesystem::path directory;
  std::string task;        // PEFT's task_type, such as SEQ_CLS; may be empty
  std::string base_model;  // base_model_name_or_path; may be empty
  int64_t rank = 0;        // the config's r and lora_alpha; patterns may differ by module
  double alpha = 0;
  bool rank_stabilised = false;  // scale = alpha / sqrt(r) instead of alpha / r
  bool fan_in_fan_out = false;   // the base stores these weights [in, out]; A and B are as always
  std::vector<std::string> target_modules;
  std::vector<std::string> modules_to_save;
  std::map<std::string, LowRank> low_rank;  // by module path
  // DoRA: m [out] of every module of low_rank, in float32; empty for plain LoRA. See with_magnitude.
  std::map<std::string, at::Tensor> magnitudes;
  std::map<std::string, at::Tensor> saved;  // whole tensors that replace the base's, by name
  int64_t bytes = 0;

  bool is_dora() const { return !magnitudes.empty(); }
  int64_t parameters() const;
};

// What DoRA makes of a base's weight [out, in]: rows of base + delta with the norms that `magnitude` says, in float32.
// Throws InputError where such a row is zero: nothing can give it a norm.
at::Tensor with_magnitude(
    const at::Tensor& base, const LowRank& delta, const at::Tensor& magnitude);

bool is_adapter(const std::filesystem::path& directory);

// Reads adapter_config.json and adapter_model.safetensors (or .bin). Throws InputError for a missing
// half, a rank that contradicts the config, and, by name, for every variant that is neither plain LoRA nor DoRA:
// lora_bias, bias terms, initialisations that change the base model.
Adapter read_adapter(const std::filesystem::path& directory);

}  // namespace theseus::update
