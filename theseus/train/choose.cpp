#include "theseus/train/choose.h"

#include <algorithm>
#include <set>

#include "theseus/base/error.h"
#include "theseus/gradient/trainable.h"
#include "theseus/train/filter.h"

namespace theseus::train {
namespace {

using Names = std::vector<std::string>;

Names all_tensors(const model::Architecture& architecture) {
  std::set<std::string> names;
  for (const auto& parameter : architecture.parameters) {
    names.insert(parameter.tensor);
  }
  return {names.begin(), names.end()};
}

bool is_of_new_head(const Head& head, const std::string& tensor) {
  return head.kind == Head::Kind::kNew && tensor.starts_with(head.module + ".");
}

Names adaptable(const model::Architecture& architecture, const std::set<std::string>& reached) {
  std::set<std::string> multi_head;  // "x.attn." of attention whose q, k and v have no module
  for (const auto& layer : architecture.linears) {
    if (layer.module.ends_with(".in_proj")) {
      multi_head.insert(layer.module.substr(0, layer.module.rfind('.')));
    }
  }
  Names modules;
  for (const auto& layer : architecture.linears) {
    const auto parent = layer.module.substr(0, layer.module.rfind('.'));
    if (layer.block != model::kOuter && layer.weight == layer.module + ".weight" &&
        reached.contains(layer.weight) && !multi_head.contains(parent)) {
      modules.push_back(layer.module);
    }
  }
  return modules;
}

}  // namespace

Choice choose_trained(
    const model::Architecture& architecture,
    bool images,
    const Head& head,
    const ChooseOptions& options) {
  const auto all = all_tensors(architecture);
  require_all_match("--freeze", options.freeze, all);
  Choice choice;
  std::set<std::string> reached;
  for (const auto& tensor : gradient::tensors_reached(architecture, images)) {
    if (!is_of_new_head(head, tensor) && !matches(tensor, options.freeze)) {
      reached.insert(tensor);
    }
  }
  if (options.low_rank) {
    const auto modules = adaptable(architecture, reached);
    require(!modules.empty(), "--lora: there is no linear layer that it could sit on");
    require_all_match("--lora-on", options.adapt, modules);
    std::copy_if(
        modules.begin(), modules.end(), std::back_inserter(choice.modules),
        [&](const auto& module) {
          return options.adapt.empty() || matches(module, options.adapt);
        });
  } else {
    choice.tensors.assign(reached.begin(), reached.end());
  }
  require(
      head.added() || !choice.tensors.empty() || !choice.modules.empty(),
      "--freeze: everything is frozen, and nothing can be learnt");
  choice.frozen = static_cast<int64_t>(all.size() - choice.tensors.size()) -
                  std::count_if(all.begin(), all.end(), [&](const auto& tensor) {
                    return is_of_new_head(head, tensor);
                  });
  return choice;
}

}  // namespace theseus::train
