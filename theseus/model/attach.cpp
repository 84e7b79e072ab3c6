#include "theseus/model/attach.h"

#include <map>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::model {
namespace {

constexpr std::string_view kWeight = ".weight";

}  // namespace

std::map<std::string, std::vector<int64_t>> tensor_shapes(const Architecture& architecture) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& parameter : architecture.parameters) {
    auto& shape = shapes[parameter.tensor];
    const auto rows = shape.empty() ? 0 : shape[0];
    shape = parameter.shape;
    if (parameter.fused()) {
      shape[0] += rows;
    }
  }
  // LoRA on one of two tied layers leaves the shared tensor alone.
  for (const auto& tie : architecture.ties) {
    shapes[tie.name] = shapes.at(tie.tied_to);
  }
  return shapes;
}

std::map<std::string, std::string> spellings(const Architecture& architecture) {
  std::map<std::string, std::string> names;
  for (const auto& parameter : architecture.parameters) {
    names[parameter.tensor] = parameter.tensor;
    names[parameter.stored] = parameter.tensor;
    const auto& prefix = architecture.prefix;
    names.try_emplace(
        parameter.tensor.starts_with(prefix) ? parameter.tensor.substr(prefix.size())
                                             : prefix + parameter.tensor,
        parameter.tensor);
    if (architecture.aliases != nullptr) {
      for (const auto& alias : architecture.aliases(parameter.tensor)) {
        names[alias] = parameter.tensor;
      }
    }
  }
  for (const auto& tie : architecture.ties) {
    names[tie.name] = tie.name;
  }
  return names;
}

namespace {

// A classification adapter brings the head that its base model came without.
bool is_new_head(
    const Architecture& architecture,
    const update::Adapter& adapter,
    const std::string& name,
    const at::Tensor& value) {
  const bool weight = name == architecture.head + ".weight";
  const bool task = architecture.head_task.empty() ||
                    (adapter.task == architecture.head_task && adapter.task != kBareEncoder);
  if (architecture.head.empty() || !task || (!weight && name != architecture.head + ".bias")) {
    return false;
  }
  require(
      value.dim() == (weight ? 2 : 1) && (!weight || value.size(1) == architecture.head_width),
      "the adapter's ", name, " has shape ", value.sizes(), "; expected a head on ",
      architecture.head_width, " numbers");
  return true;
}

}  // namespace

void attach_adapter(
    const Architecture& architecture, const update::Adapter& adapter, Weights& weights) {
  const auto shapes = tensor_shapes(architecture);
  const auto names = spellings(architecture);
  const auto own_name = [&](const std::string& name) {
    const auto found = names.find(name);
    require(found != names.end(), "the adapter changes ", name, ", which this model does not have");
    return found->second;
  };
  for (const auto& [module, delta] : adapter.low_rank) {
    const auto tensor = own_name(module + std::string(kWeight));
    const std::vector<int64_t> shape = {delta.up.size(0), delta.down.size(1)};
    require(
        shapes.at(tensor) == shape, "the adapter's ", module, " is for a weight ",
        at::IntArrayRef(shape), "; this model's is ", at::IntArrayRef(shapes.at(tensor)));
    if (adapter.is_dora()) {
      require(
          weights.has(tensor), "the adapter's DoRA on ", module,
          ", which the base model's config ties to another tensor, is not supported");
      weights.set_dora(tensor, delta, adapter.magnitudes.at(module));
      continue;
    }
    weights.set_low_rank(tensor.substr(0, tensor.size() - kWeight.size()), delta);
  }
  for (const auto& [name, value] : adapter.saved) {
    if (is_new_head(architecture, adapter, name, value)) {
      weights.replace(name, value);
      continue;
    }
    const auto tensor = own_name(name);
    require(
        value.sizes() == at::IntArrayRef(shapes.at(tensor)), "the adapter's ", name, " has shape ",
        value.sizes(), "; this model's is ", at::IntArrayRef(shapes.at(tensor)));
    require(
        weights.has(tensor), "the adapter replaces ", name,
        ", which the base model's config ties to another tensor; that is not supported");
    weights.replace(tensor, value);
  }
}

}  // namespace theseus::model
