#include "theseus/stats/add_up.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

namespace theseus::stats {
namespace {

using nlohmann::json;

// Tensors that add up by adding their elements.
const std::set<std::string> kSums = {"rows",  "distinct",    "source_sum", "target_sum",
                                     "cross", "source_gram", "target_gram"};

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

bool adds_up(const json& tensors) {
  const auto names = tensors.items();
  return std::all_of(
      names.begin(), names.end(), [](const auto& item) { return kSums.contains(item.key()); });
}

// What the processes have between them; null for a space that they hold in forms which differ.
json united(const std::vector<std::string>& outlines) {
  json all = json::object();
  for (const auto& text : outlines) {
    const auto parsed = json::parse(text);
    for (const auto& [stage, spaces] : parsed.items()) {
      for (const auto& [space, tensors] : spaces.items()) {
        auto& known = all[stage];
        const bool same = !known.contains(space) || known[space] == tensors;
        known[space] = same && adds_up(tensors) ? tensors : json();
      }
    }
  }
  return all;
}

// Process by process, for what does not add up element by element.
void merge(
    const cluster::Processes& processes,
    c10::Device device,
    const std::string& space,
    Moments& moments) {
  const auto mine = [&] {
    const auto found = moments.find(space);
    return packed(found == moments.end() ? Moments() : Moments{*found});
  };
  for (const auto& parcel : processes.gather_in_first(mine())) {
    for (const auto& [name, theirs] : unpacked(parcel)) {
      const auto other = theirs.to(device);
      const auto [found, fresh] = moments.try_emplace(name, other);
      if (!fresh) {
        found->second.merge(other);
      }
    }
  }
  moments[space] = unpacked(processes.from_first(mine())).at(space).to(device);
}

// Of all processes' tensors of these shapes; this one's may be missing.
std::map<std::string, at::Tensor> sums_of(
    const cluster::Processes& processes,
    c10::Device device,
    const json& shapes,
    std::map<std::string, at::Tensor> mine) {
  for (const auto& [name, shape] : shapes.items()) {
    const auto dtype = name == "rows" || name == "distinct" ? at::kLong : at::kDouble;
    auto& sum = mine[name];
    if (!sum.defined()) {
      const auto where = dtype == at::kLong ? c10::Device(at::kCPU) : device;
      sum = at::zeros(shape.get<std::vector<int64_t>>(), at::TensorOptions(dtype).device(where));
    }
    processes.sum(sum);
  }
  return mine;
}

}  // namespace

cluster::Parcel packed(const Moments& moments) {
  cluster::Parcel parcel;
  json names = json::array();
  for (const auto& [space, pair] : moments) {
    for (const auto& [name, tensor] : pair.tensors()) {
      names.push_back({space, name});
      parcel.tensors.push_back(tensor);
    }
  }
  parcel.text = names.dump();
  return parcel;
}

Moments unpacked(const cluster::Parcel& parcel) {
  std::map<std::string, std::map<std::string, at::Tensor>> pairs;
  const auto names = json::parse(parcel.text);
  for (size_t i = 0; i < names.size(); ++i) {
    pairs[names[i].at(0)][names[i].at(1)] = parcel.tensors[i];
  }
  Moments moments;
  for (const auto& [space, tensors] : pairs) {
    moments[space] = PairMoments::from(tensors);
  }
  return moments;
}

void add_up(
    const cluster::Processes& processes, c10::Device device, std::map<int64_t, Moments>& moments) {
  if (processes.alone()) {
    return;
  }
  const auto all = united(processes.gather(outline(moments).dump()));
  for (const auto& [stage, spaces] : all.items()) {
    auto& here = moments[std::stoll(stage)];
    for (const auto& [space, shapes] : spaces.items()) {
      if (shapes.is_null()) {
        merge(processes, device, space, here);
        continue;
      }
      std::map<std::string, at::Tensor> mine;
      if (const auto found = here.find(space); found != here.end()) {
        const auto tensors = found->second.tensors();
        mine.insert(tensors.begin(), tensors.end());
      }
      here.insert_or_assign(space, PairMoments::from(sums_of(processes, device, shapes, mine)));
    }
  }
}

}  // namespace theseus::stats
