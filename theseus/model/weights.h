#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/parameter.h"
#include "theseus/update/adapter.h"

namespace theseus::model {

struct Placement {
  c10::Device device = c10::Device(c10::kCPU);
  c10::ScalarType dtype = c10::kFloat;  // of weights and activations alike
  bool tf32 = false;  // where calibration runs through the model, a GPU rounds factors to TF32
};

// A model's tensors on the device, each brought there when first asked for and kept until its block
// is dropped. float32 weights on the CPU are the file's own pages, not a copy. Not thread-safe.
class Weights {
 public:
  Weights(
      std::shared_ptr<const checkpoint::Checkpoint> checkpoint,
      const std::vector<Parameter>& parameters,
      Placement placement);

  const Placement& placement() const { return placement_; }

  bool has(const std::string& tensor) const { return slots_.contains(tensor); }
  // By the library's own name. Throws InputError when the tensor holds NaN or infinity.
  const at::Tensor& operator[](const std::string& tensor);
  // Frees what block `block` brought in; it comes back when asked for.
  void drop_block(int64_t block);

  // LoRA of a linear layer, or null.
  const update::LowRank* find_low_rank(const std::string& module) const;
  // The adapter's modules by the model's own names: see Model::attach.
  void set_low_rank(const std::string& module, const update::LowRank& delta);
  // DoRA on a linear layer: its weight becomes update::with_magnitude of the checkpoint's whenever it is brought in.
  void set_dora(
      const std::string& tensor, const update::LowRank& delta, const at::Tensor& magnitude);
  // Another value for a tensor, or a tensor that the checkpoint does not have.
  void replace(const std::string& tensor, const at::Tensor& value);
  // By replace() or set_dora().
  bool is_replaced(const std::string& tensor) const;
  // Undoes replace() for a tensor of the checkpoint.
  void restore(const std::string& tensor);
  void detach_adapter();

 private:
  struct Slot {
    std::string stored;
    int64_t block = kOuter;
    at::Tensor value;        // undefined until asked for
    at::Tensor replacement;  // from an adapter's modules_to_save, or undefined
    at::Tensor magnitude;    // of DoRA, or undefined
    update::LowRank delta;   // the same
  };
  at::Tensor placed(const at::Tensor& tensor, const std::string& name) const;

  std::shared_ptr<const checkpoint::Checkpoint> checkpoint_;
  Placement placement_;
  std::unordered_map<std::string, Slot> slots_;
  std::unordered_map<std::string, update::LowRank> low_rank_;
};

}  // namespace theseus::model
