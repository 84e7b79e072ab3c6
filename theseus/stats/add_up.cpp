#include "theseus/stats/add_up.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"

namespace theseus::stats {
namespace {

using nlohmann::json;
using TensorsByName = std::map<std::string, at::Tensor>;

// The shapes of what a process has: by stage, space and name.
json outline(const std::map<int64_t, Moments>& moments) {
  json result = json::object();
  for (const auto& [stage, spaces] : moments) {
    for (const auto& [space, pair] : spaces) {
      for (const auto& [name, tensor] : pair.tensors()) {
        result[std::to_string(stage)][space][name] = tensor.sizes().vec();
      }
    }
  }
  return result;
}

// Rows of all processes, one's behind the other's: each adds its own to a tensor of zeros, where nobody else's are.
at::Tensor stacked(
    const cluster::Processes& processes,
    const at::Tensor& counts,  // int64 [processes]
    int64_t width,
    const at::Tensor& rows,  // float32 [n, width], or undefined
    c10::Device device) {
  auto all = at::zeros(
      {counts.sum().item<int64_t>(), width}, at::TensorOptions(at::kDouble).device(device));
  if (rows.defined()) {
    const auto first = counts.narrow(0, 0, processes.rank()).sum().item<int64_t>();
    all.narrow(0, first, rows.size(0)).copy_(rows);
  }
  processes.sum(all);
  return all.to(at::kFloat);
}

// Of all processes' tensors of these shapes; this one's may be missing.
TensorsByName sums_of(
    const cluster::Processes& processes,
    c10::Device device,
    const json& shapes,
    TensorsByName mine) {
  auto counts = at::zeros({processes.size()}, at::kLong);
  if (const auto found = mine.find("rows"); found != mine.end()) {
    counts[processes.rank()] = found->second.item<int64_t>();
  }
  processes.sum(counts);
  for (const auto& [name, words] : shapes.items()) {
    const auto shape = words.get<std::vector<int64_t>>();
    auto& sum = mine[name];
    if (name.ends_with("_rows")) {
      sum = stacked(processes, counts, shape.at(1), sum, device);
      continue;
    }
    if (!sum.defined()) {
      const bool counted = name == "rows" || name == "distinct";
      sum = counted ? at::zeros(shape, at::kLong)
                    : at::zeros(shape, at::TensorOptions(at::kDouble).device(device));
    }
    processes.sum(sum);
  }
  return mine;
}

}  // namespace

void add_up(
    const cluster::Processes& processes, c10::Device device, std::map<int64_t, Moments>& moments) {
  if (processes.alone()) {
    return;
  }
  // All make the same sums in the same order: those that the first process has.
  const auto all = json::parse(processes.from_first(outline(moments).dump()));
  for (const auto& [stage, spaces] : all.items()) {
    auto& here = moments[std::stoll(stage)];
    require<InternalError>(
        here.size() <= spaces.size(), "a process saw spaces that the first one did not");
    for (const auto& [space, shapes] : spaces.items()) {
      TensorsByName mine;
      if (const auto found = here.find(space); found != here.end()) {
        const auto tensors = found->second.tensors();
        mine.insert(tensors.begin(), tensors.end());
      }
      here.insert_or_assign(space, PairMoments::from(sums_of(processes, device, shapes, mine)));
    }
  }
}

}  // namespace theseus::stats
