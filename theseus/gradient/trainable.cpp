#include "theseus/gradient/trainable.h"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::gradient {
namespace {

constexpr const char* kDown = ".lora_A.weight";
constexpr const char* kUp = ".lora_B.weight";

}  // namespace

Trainable::~Trainable() {
  model_.detach();
}

bool Trainable::same_dtype() const {
  const auto dtype = model_.weights().placement().dtype;
  return dtype == at::kFloat || dtype == at::kDouble;
}

at::Tensor Trainable::leaf(const std::string& name, const at::Tensor& value) {
  const auto& place = model_.weights().placement();
  auto copy = value.detach()
                  .to(place.device, same_dtype() ? place.dtype : at::kFloat)
                  .clone(at::MemoryFormat::Contiguous);
  return leaves_[name] = copy.set_requires_grad(true);
}

void Trainable::train(const std::string& tensor) {
  const auto& parameters = model_.architecture().parameters;
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    return parameter.tensor == tensor;
  });
  require(found != parameters.end(), "the model has no tensor ", tensor);
  train(tensor, model_.checkpoint().tensor(found->stored));
  model_.checkpoint().forget(found->stored);
}

void Trainable::train(const std::string& tensor, const at::Tensor& value) {
  model_.weights().replace(tensor, leaf(tensor, value));
}

void Trainable::adapt(const std::string& module, const update::LowRank& start) {
  leaf(module + kDown, start.down);
  leaf(module + kUp, start.up);
  scales_[module] = start.scale;
  model_.weights().set_low_rank(module, low_rank(module));
}

update::LowRank Trainable::low_rank(const std::string& module) const {
  return {
      .up = leaves_.at(module + kUp),
      .down = leaves_.at(module + kDown),
      .scale = scales_.at(module)};
}

// The weights keep what they made of a leaf. In the leaf's own dtype that is the leaf itself; in another
// it is a rounded copy of old values, whose graph is gone after one pass back.
void Trainable::refresh() {
  if (same_dtype()) {
    return;
  }
  for (const auto& [module, scale] : scales_) {
    model_.weights().set_low_rank(module, low_rank(module));
  }
  for (const auto& [name, value] : leaves_) {
    if (!name.ends_with(kDown) && !name.ends_with(kUp)) {
      model_.weights().replace(name, value);
    }
  }
}

void Trainable::forget_gradients() {
  for (auto& [name, value] : leaves_) {
    value.mutable_grad() = at::Tensor();
  }
}

std::vector<std::string> tensors_reached(const model::Architecture& architecture, bool images) {
  const auto& towers = architecture.towers;
  const bool two =
      std::any_of(
          towers.begin(), towers.end(), [](const auto& tower) { return tower.image > 0; }) &&
      std::any_of(
          towers.begin(), towers.end(), [](const auto& tower) { return tower.vocabulary > 0; });
  std::set<std::string> reached;
  for (const auto& parameter : architecture.parameters) {
    const bool read = std::any_of(towers.begin(), towers.end(), [&](const auto& tower) {
      return (tower.image > 0) == images &&
             std::any_of(parameter.axes.begin(), parameter.axes.end(), [&](const auto& space) {
               return space.starts_with(tower.name + ".");
             });
    });
    if (!two || read) {
      reached.insert(parameter.tensor);
    }
  }
  return {reached.begin(), reached.end()};
}

}  // namespace theseus::gradient
