#include "theseus/transport/shares.h"

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

namespace theseus::transport {
namespace {

using nlohmann::json;

// Maps that are solved together, by one process.
struct Unit {
  double cost = 0;
  int64_t stage = 0;
  SpaceSet spaces = {};
};

json about(const std::string& space, const maps::Map& map) {
  return {{"space", space},
          {"factored", map.factors.defined()},
          {"identity", map.factors.identity},
          {"rank", map.rank},
          {"completed", map.completed},
          {"route", map.route},
          {"isometry", map.isometry},
          {"by_gradients", map.by_gradients}};
}

// Numbers that may be infinite, which JSON does not know.
at::Tensor numbers_of(const maps::Map& map) {
  return at::tensor({map.orthogonality, map.asymmetry, map.condition}, at::kDouble);
}

// A map's tensors, always as many.
std::vector<at::Tensor> tensors_of(const maps::Map& map) {
  const bool factored = map.factors.defined();
  return {
      factored ? map.factors.left : map.matrix, factored ? map.factors.right : at::empty({0}),
      numbers_of(map)};
}

maps::Map map_of(const json& about, const at::Tensor* tensors) {
  const bool factored = about.at("factored");
  const auto& numbers = tensors[2];
  return {
      .matrix = factored ? at::Tensor() : tensors[0],
      .factors =
          factored ? maps::Factors{about.at("identity"), tensors[0], tensors[1]} : maps::Factors(),
      .rank = about.at("rank"),
      .completed = about.at("completed"),
      .route = about.at("route"),
      .isometry = about.at("isometry"),
      .orthogonality = numbers[0].item<double>(),
      .asymmetry = numbers[1].item<double>(),
      .condition = numbers[2].item<double>(),
      .by_gradients = about.at("by_gradients")};
}

// Moments for other processes, and as they arrive there.
cluster::Parcel packed(const stats::Moments& moments) {
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

stats::Moments unpacked(const cluster::Parcel& parcel) {
  std::map<std::string, std::map<std::string, at::Tensor>> pairs;
  const auto names = json::parse(parcel.text);
  for (size_t i = 0; i < names.size(); ++i) {
    pairs[names[i].at(0)][names[i].at(1)] = parcel.tensors[i];
  }
  stats::Moments moments;
  for (const auto& [space, tensors] : pairs) {
    moments[space] = stats::PairMoments::from(tensors);
  }
  return moments;
}

}  // namespace

SpaceSet agreed(const cluster::Processes& processes, const SpaceSet& spaces) {
  return json::parse(processes.from_first(json(spaces).dump())).get<SpaceSet>();
}

Schedule agreed(const cluster::Processes& processes, const Schedule& schedule) {
  const auto found = json::parse(
      processes.from_first(json{{"groups", schedule.groups}, {"spill", schedule.spill}}.dump()));
  auto result = schedule;
  result.groups = found.at("groups").get<decltype(result.groups)>();
  result.spill = found.at("spill");
  return result;
}

std::filesystem::path agreed(
    const cluster::Processes& processes, const std::filesystem::path& path) {
  return processes.from_first(processes.first() ? std::filesystem::absolute(path).string() : "");
}

void agree(const cluster::Processes& processes, Position& position, stats::Moments& outer) {
  if (processes.alone()) {
    return;
  }
  position = {std::stoll(processes.from_first(std::to_string(position.first))), 0};
  for (const auto& [space, pair] : unpacked(processes.from_first(packed(outer)))) {
    outer[space] = pair;
  }
}

std::map<int64_t, SpaceSet> share_of(
    const cluster::Processes& processes,
    const Solver& solver,
    std::pair<int64_t, int64_t> stages,
    const SpaceSet& needed,
    bool whole_stages) {
  std::map<std::pair<int64_t, std::string>, Unit> by_key;
  for (auto stage = stages.first; stage < stages.second; ++stage) {
    for (const auto& space : solver.belonging(stage, needed)) {
      auto& unit = by_key[{stage, whole_stages ? "" : solver.find_root(space)}];
      unit.stage = stage;
      unit.cost += solver.cost(space, stage);
      unit.spaces.insert(space);
    }
  }
  std::vector<Unit> units;
  for (auto& [key, unit] : by_key) {
    units.push_back(std::move(unit));
  }
  std::stable_sort(units.begin(), units.end(), [](const Unit& left, const Unit& right) {
    return left.cost > right.cost;
  });
  std::vector<double> loads(static_cast<size_t>(processes.size()));
  std::map<int64_t, SpaceSet> mine;
  for (auto& unit : units) {
    // From the back: the first process has the maps to apply, too.
    const auto least = std::min_element(loads.rbegin(), loads.rend());
    *least += unit.cost;
    if (loads.rend() - least - 1 == processes.rank()) {
      mine[unit.stage].merge(unit.spaces);
    }
  }
  return mine;
}

MapSet gathered(const cluster::Processes& processes, const MapSet& maps, c10::Device device) {
  // Nothing of a map may be forgotten below.
  static_assert(sizeof(maps::Map) == 120, "a map has other members than are sent here");
  cluster::Parcel parcel;
  json rows = json::array();
  for (const auto& [space, map] : maps) {
    rows.push_back(about(space, map));
    const auto tensors = tensors_of(map);
    parcel.tensors.insert(parcel.tensors.end(), tensors.begin(), tensors.end());
  }
  parcel.text = rows.dump();
  MapSet all = maps;
  for (const auto& other : processes.gather_in_first(parcel)) {
    const auto found = json::parse(other.text);
    for (size_t i = 0; i < found.size(); ++i) {
      all[found[i].at("space")] = map_of(found[i], other.tensors.data() + 3 * i).to(device);
    }
  }
  return processes.first() ? all : MapSet();
}

}  // namespace theseus::transport
