#include "theseus/model/weights.h"

#include <ATen/ATen.h>
#include <torch/version.h>

#include "theseus/base/bring.h"
#include "theseus/base/error.h"
#include "theseus/model/layers.h"

namespace theseus::model {
Weights::Weights(
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint,
    const std::vector<Parameter>& parameters,
    Placement placement)
    : checkpoint_(std::move(checkpoint)), placement_(placement) {
  require(
      TORCH_VERSION_MAJOR >= 2 || placement.dtype != at::kHalf || !placement.device.is_cpu(),
      "libtorch ", TORCH_VERSION,
      " does not compute in float16 on the cpu; use float32, bfloat16, "
      "or libtorch 2");
  for (const auto& parameter : parameters) {
    slots_[parameter.tensor] = {.stored = parameter.stored, .block = parameter.block};
  }
}

at::Tensor Weights::placed(const at::Tensor& tensor, const std::string& name) const {
  require(
      at::isFloatingType(tensor.scalar_type()), name, " has dtype ", tensor.scalar_type(),
      "; weights must be floating point");
  const bool far = tensor.device() != placement_.device;
  const auto value = (far ? bring(tensor, placement_.device) : tensor).to(placement_.dtype);
  require(
      all_finite(value), name, " holds NaN or infinity",
      tensor.scalar_type() == placement_.dtype ? "" : " after conversion to the compute dtype");
  return value;
}

const at::Tensor& Weights::operator[](const std::string& tensor) {
  const auto found = slots_.find(tensor);
  require<InternalError>(found != slots_.end(), "tensor ", tensor, " was not declared");
  Slot& slot = found->second;
  if (!slot.value.defined() && slot.replacement.defined()) {
    slot.value = placed(slot.replacement, "the adapter's " + tensor);
  } else if (!slot.value.defined() && slot.magnitude.defined()) {
    const auto merged = with_context("adding the adapter to " + slot.stored, [&] {
      return update::with_magnitude(checkpoint_->tensor(slot.stored), slot.delta, slot.magnitude);
    });
    slot.value = placed(merged, "the adapter's " + tensor);
    checkpoint_->forget(slot.stored);
  } else if (!slot.value.defined()) {
    const auto stored = checkpoint_->tensor(slot.stored);
    slot.value = placed(stored, slot.stored);
    if (!slot.value.is_same(stored) && slot.value.data_ptr() != stored.data_ptr()) {
      checkpoint_->forget(slot.stored);  // a copy: the file's pages need not be in memory, too
    }
  }
  return slot.value;
}

void Weights::drop_block(int64_t block) {
  for (auto& [name, slot] : slots_) {
    if (slot.block == block && slot.value.defined()) {
      slot.value = at::Tensor();
      if (!slot.stored.empty()) {
        checkpoint_->forget(slot.stored);
      }
    }
  }
}

const update::LowRank* Weights::find_low_rank(const std::string& module) const {
  const auto found = low_rank_.find(module);
  return found == low_rank_.end() ? nullptr : &found->second;
}

void Weights::set_low_rank(const std::string& module, const update::LowRank& delta) {
  low_rank_[module] = {
      .up = placed(delta.up, module + ".lora_B"),
      .down = placed(delta.down, module + ".lora_A"),
      .scale = delta.scale};
}

void Weights::set_dora(
    const std::string& tensor, const update::LowRank& delta, const at::Tensor& magnitude) {
  Slot& slot = slots_.at(tensor);
  slot.delta = {
      .up = delta.up.to(at::kFloat), .down = delta.down.to(at::kFloat), .scale = delta.scale};
  slot.magnitude = magnitude;
  slot.value = at::Tensor();
}

void Weights::replace(const std::string& tensor, const at::Tensor& value) {
  Slot& slot = slots_[tensor];
  slot.replacement = value;
  slot.value = at::Tensor();
}

bool Weights::is_replaced(const std::string& tensor) const {
  const auto found = slots_.find(tensor);
  return found != slots_.end() &&
         (found->second.replacement.defined() || found->second.magnitude.defined());
}

void Weights::restore(const std::string& tensor) {
  Slot& slot = slots_.at(tensor);
  slot.replacement = slot.value = at::Tensor();
}

void Weights::detach_adapter() {
  low_rank_.clear();
  std::erase_if(slots_, [](const auto& item) { return item.second.stored.empty(); });
  for (auto& [name, slot] : slots_) {
    if (slot.replacement.defined() || slot.magnitude.defined()) {
      slot.replacement = slot.magnitude = slot.value = at::Tensor();
      slot.delta = {};
    }
  }
}

}  // namespace theseus::model
