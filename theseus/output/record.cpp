#include "theseus/output/record.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <ATen/ATen.h>

#include "theseus/transport/alignment.h"
#include "theseus/transport/depth.h"

namespace theseus::output {

using nlohmann::ordered_json;
using transport::Disposition;

namespace {

// Why parameters of the source go nowhere, by their role; those that are carried are not among them.
class LeftBehind {
 public:
  LeftBehind(const std::vector<Disposition>& plan, const model::Architecture& source)
      : source_(source) {
    for (const auto& row : plan) {
      if (row.source == nullptr) {
        continue;
      }
      const auto role = source.role(row.source->name, row.source->block);
      if (row.carried) {
        carried_.insert(role);
      } else {
        reasons_[role] = row.reason;
      }
    }
  }

  // Nothing when it is carried.
  std::optional<std::string> reason(const model::Parameter& parameter) const {
    const auto role = source_.role(parameter.name, parameter.block);
    if (carried_.contains(role)) {
      return std::nullopt;
    }
    const auto found = reasons_.find(role);
    return found != reasons_.end() ? found->second : "the target has no such parameter";
  }

 private:
  const model::Architecture& source_;
  std::set<std::string> carried_;
  std::map<std::string, std::string> reasons_;
};

}  // namespace

ordered_json describe_depth(
    const stats::Route& route,
    const Opened& opened,
    transport::Depth depth,
    const at::Tensor& similarity) {
  const bool differ =
      transport::depths_differ(opened.source.architecture(), opened.target.architecture());
  ordered_json result = {{"mode", differ ? transport::word_of(depth) : "block by block"}};
  result.update(transport::describe(route));
  if (similarity.defined()) {
    const auto rows = similarity.to(at::kCPU).contiguous();
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const auto* begin = rows[i].data_ptr<double>();
      result["similarity"].push_back(std::vector<double>(begin, begin + rows.size(1)));
    }
  }
  return result;
}

ordered_json describe_plan(const std::vector<Disposition>& plan) {
  auto rows = ordered_json::array();
  for (const auto& row : plan) {
    rows.push_back(
        {{"parameter", row.target->name},
         {"shape", row.target->shape},
         {"action", row.carried ? "carried" : "kept"},
         {"reason", row.reason}});
  }
  return rows;
}

ordered_json describe_schedule(const transport::Schedule& schedule, c10::Device device) {
  ordered_json groups = ordered_json::array();
  for (const auto& [first, last] : schedule.groups) {
    groups.push_back({first, last - 1});
  }
  return {
      {"groups", groups},
      {"hidden_states", schedule.spill ? "in files" : "in memory"},
      {"hidden_state_bytes", schedule.cost.states},
      {"peak_memory_bytes", schedule.cost.peak},
      {"memory_of", c10::str(device)},
      {"statistics",
       {{"rows", schedule.kept},
        {"moments", schedule.summed},
        {"factored_maps", schedule.factored}}},
      {"flops",
       {{"forward", schedule.cost.forward},
        {"statistics", schedule.cost.statistics},
        {"solve", schedule.cost.solve},
        {"carry", schedule.cost.carry}}}};
}

ordered_json describe_update(const std::vector<Disposition>& plan, const Opened& opened) {
  const auto& source = opened.source.architecture();
  const LeftBehind left(plan, source);
  const auto device = opened.source.weights().placement().device;
  double kept = 0, all = 0;
  ordered_json rows = ordered_json::array();
  for (const auto& parameter : source.parameters) {
    if (!opened.update->changes(parameter)) {
      continue;
    }
    const auto square = std::pow(opened.update->delta_norm(parameter, device), 2);
    all += square;
    if (const auto reason = left.reason(parameter)) {
      kept += square;
      rows.push_back(
          {{"parameter", parameter.name}, {"norm", std::sqrt(square)}, {"reason", *reason}});
    }
  }
  return {
      {"norm", std::sqrt(all)},
      {"left_behind_share", all > 0 ? kept / all : 0.0},
      {"left_behind", rows}};
}

ordered_json describe_carried(
    const std::vector<Disposition>& plan, const CarriedFiles& files, const WrittenModel* written) {
  std::map<std::string, const TensorChange*> changes;
  if (written != nullptr) {
    for (const auto& change : written->changes) {
      changes[change.tensor] = &change;
    }
  }
  auto rows = describe_plan(plan);
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!plan[i].carried || !files.contains(plan[i].target->name)) {
      continue;
    }
    const auto carried = files.read(plan[i].target->name);
    rows[i]["source_norm"] = carried.source_norm;
    rows[i]["target_norm"] = carried.target_norm;
    rows[i]["norm_error"] = carried.target_norm - carried.source_norm;
    if (carried.agreement) {
      rows[i]["sign_agreement"] = *carried.agreement;
    }
    if (carried.factors) {
      rows[i]["rank"] = carried.factors->up.size(1);
    }
    if (const auto found = changes.find(plan[i].target->tensor); found != changes.end()) {
      rows[i]["rounding_loss"] = found->second->rounding_loss;
    }
  }
  return rows;
}

ordered_json totals_of(const ordered_json& parameters) {
  std::map<std::string, int64_t> counts;
  for (const auto& row : parameters) {
    ++counts[row.at("action")];
  }
  return counts;
}

std::vector<std::string> notes_on_update(
    const std::vector<Disposition>& plan, const Opened& opened) {
  const auto& source = opened.source.architecture();
  const LeftBehind left(plan, source);
  std::map<std::string, std::pair<std::string, int64_t>> roles;  // reason, how many
  for (const auto& parameter : source.parameters) {
    const auto reason = left.reason(parameter);
    if (reason && opened.update->changes(parameter)) {
      auto& found = roles[model::role_of(parameter.name)];
      found.first = model::role_of(*reason);
      ++found.second;
    }
  }
  std::vector<std::string> notes;
  for (const auto& [role, found] : roles) {
    notes.push_back(c10::str(
        "left behind: ", role, found.second > 1 ? c10::str(" (", found.second, " times)") : "",
        ": ", found.first));
  }
  return notes;
}

std::vector<std::string> notes_on_maps(const ordered_json& rows) {
  struct Short {
    int64_t blocks = 0, rank = 0, of = 0, completed = 0;
  };
  std::map<std::string, Short> shorts;
  int64_t fell_back = 0;
  for (const auto& row : rows) {
    const auto of =
        std::min(row.at("source_width").get<int64_t>(), row.at("target_width").get<int64_t>());
    const auto rank = row.at("rank").get<int64_t>();
    if (rank > 0 && rank < of) {
      auto& found = shorts[model::role_of(row.at("space"))];
      found.rank = found.blocks == 0 ? rank : std::min(found.rank, rank);
      found.of = of;
      found.completed = std::max(found.completed, row.at("completed").get<int64_t>());
      ++found.blocks;
    }
    fell_back += row.at("route") == "svd" ? 1 : 0;
  }
  std::vector<std::string> notes;
  for (const auto& [role, found] : shorts) {
    notes.push_back(c10::str(
        role, ": the statistics determine ", found.rank, " of ", found.of, " directions",
        found.blocks > 1 ? c10::str(" (in ", found.blocks, " blocks)") : "",
        found.completed > 0 ? "; the others are filled in" : ""));
  }
  if (fell_back > 0) {
    notes.push_back(c10::str(
        fell_back, " maps fell back from the fast solver to the singular value decomposition"));
  }
  return notes;
}

}  // namespace theseus::output
