#include "theseus/transport/plan.h"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::transport {
namespace {

constexpr std::string_view kNotReached = "the examples do not reach";

// The towers whose rows tell about `space`: its own, or those of the layers that write it.
std::set<std::string> towers_of(const model::Architecture& target, const std::string& space) {
  std::set<std::string> towers;
  for (const auto& tower : target.towers) {
    if (tower.name == model::tower_of_space(space)) {
      return {tower.name};
    }
  }
  for (const auto& layer : target.linears) {
    if (std::find(layer.out.begin(), layer.out.end(), space) != layer.out.end()) {
      towers.insert(model::tower_of_space(layer.in));
    }
  }
  return towers;
}

class Planner {
 public:
  Planner(
      const model::Architecture& source,
      const model::Architecture& target,
      const stats::Route& route,
      const PlanOptions& options)
      : source_(source), target_(target), route_(route), options_(options) {}

  Disposition operator()(const model::Parameter& parameter) const {
    Disposition row{.target = &parameter, .source = counterpart(parameter)};
    row.reason = find_reason_to_keep(row);
    if (!row.reason.empty()) {
      return row;
    }
    const bool gain = parameter.role == model::Role::kGain;
    for (const auto& space : parameter.axes) {
      if (!model::is_fixed(space)) {
        row.maps.push_back(space);
      }
    }
    row.diagonal = gain && !row.maps.empty() && options_.norms == Norms::kDiagonal;
    if (row.diagonal) {
      row.maps.push_back(norm_input(parameter));
    }
    row.reason = find_unreached(row);
    row.carried = row.reason.empty();
    if (row.carried) {
      row.reason = describe(row);
    }
    return row;
  }

 private:
  const model::Parameter* counterpart(const model::Parameter& parameter) const {
    const auto role = target_.role(parameter.name, parameter.block);
    if (parameter.block == model::kOuter) {
      return source_.find_parameter(role, model::kOuter);
    }
    for (const auto& pair : route_.pairs) {
      if (pair.target == parameter.block) {
        const auto& block = route_.source[static_cast<size_t>(pair.source)];
        return source_.find_parameter(role, block.run_as);
      }
    }
    return nullptr;
  }

  std::string find_reason_to_keep(const Disposition& row) const {
    const auto& parameter = *row.target;
    const bool norm = parameter.role == model::Role::kGain || parameter.role == model::Role::kShift;
    if (row.source == nullptr) {
      return "the source has no such parameter";
    }
    if (parameter.role == model::Role::kTable) {
      return "an embedding, position table or scale";
    }
    if (norm && options_.norms == Norms::kSkip) {
      return "norms are left alone (--norms skip)";
    }
    for (size_t axis = 0; axis < parameter.axes.size(); ++axis) {
      if (!model::is_fixed(parameter.axes[axis])) {
        continue;
      }
      if (!norm && !options_.heads) {
        return c10::str("a head onto ", parameter.axes[axis], " (--head carry carries it)");
      }
      if (parameter.shape[axis] != row.source->shape[axis]) {
        return c10::str(
            parameter.axes[axis], " differs: ", row.source->shape[axis], " in the source, ",
            parameter.shape[axis], " in the target");
      }
    }
    return {};
  }

  std::string norm_input(const model::Parameter& parameter) const {
    for (const auto& norm : target_.norms) {
      if (norm.module + ".weight" == parameter.name) {
        return norm.in;
      }
    }
    throw InternalError("no norm has the gain " + parameter.name);
  }

  std::string find_unreached(const Disposition& row) const {
    for (const auto& space : row.maps) {
      const auto towers = towers_of(target_, space);
      const bool reached = std::any_of(towers.begin(), towers.end(), [&](const auto& tower) {
        return options_.towers.contains(tower);
      });
      if (!reached) {
        return c10::str(kNotReached, " ", space);
      }
    }
    return {};
  }

  static std::string describe(const Disposition& row) {
    if (row.maps.empty()) {
      return "as it is";
    }
    if (row.diagonal) {
      return "diagonal, " + row.maps[0];
    }
    return row.maps.size() == 1 ? row.maps[0] : c10::str(row.maps[0], " x ", row.maps[1]);
  }

  const model::Architecture& source_;
  const model::Architecture& target_;
  const stats::Route& route_;
  const PlanOptions& options_;
};

}  // namespace

std::vector<Disposition> make_plan(
    const model::Model& source,
    const model::Model& target,
    const stats::Route& route,
    const PlanOptions& options) {
  const Planner planner(source.architecture(), target.architecture(), route, options);
  std::vector<Disposition> plan;
  for (const auto& parameter : target.architecture().parameters) {
    plan.push_back(planner(parameter));
  }
  return plan;
}

SpaceSet spaces_of(const std::vector<Disposition>& plan) {
  SpaceSet spaces;
  for (const auto& row : plan) {
    if (row.carried) {
      spaces.insert(row.maps.begin(), row.maps.end());
    }
  }
  return spaces;
}

std::vector<Load> loads_of(const std::vector<Disposition>& plan, const SourceUpdate* update) {
  std::vector<Load> loads;
  for (const auto& row : plan) {
    if (row.carried) {
      const auto factors = update == nullptr ? std::nullopt : update->find_low_rank(*row.source);
      loads.push_back({row.source, row.target, factors ? factors->up.size(1) : 0});
    }
  }
  return loads;
}

std::vector<const model::Parameter*> sources_of(
    const Disposition& row, const model::Architecture& source, const stats::Route& route) {
  if (row.target->block == model::kOuter) {
    return {row.source};
  }
  const auto role = source.role(row.source->name, row.source->block);
  std::vector<const model::Parameter*> result;
  for (const auto& pair : route.pairs) {
    if (pair.target == row.target->block) {
      for (const auto& [block, share] : route.source[static_cast<size_t>(pair.source)].parts) {
        result.push_back(source.find_parameter(role, block));
      }
    }
  }
  return result;
}

void leave_unchanged(
    std::vector<Disposition>& plan,
    const SourceUpdate& update,
    const model::Architecture& source,
    const stats::Route& route) {
  for (const auto& parameter : source.parameters) {
    update.changes(parameter);  // also of those that stay: what is not finite must show now
  }
  for (auto& row : plan) {
    if (!row.carried) {
      continue;
    }
    const auto sources = sources_of(row, source, route);
    const bool any = std::any_of(sources.begin(), sources.end(), [&](const auto* parameter) {
      return update.changes(*parameter);
    });
    if (!any) {
      row.carried = false;
      row.reason = "the update leaves it alone";
    }
  }
}

void require_reached(
    const std::vector<Disposition>& plan,
    const SourceUpdate& update,
    const model::Architecture& source) {
  std::set<std::string> roles;
  for (const auto& row : plan) {
    if (!row.carried && row.source != nullptr && row.reason.starts_with(kNotReached)) {
      roles.insert(source.role(row.source->name, row.source->block));
    }
  }
  for (const auto& parameter : source.parameters) {
    const bool lost =
        roles.contains(source.role(parameter.name, parameter.block)) && update.changes(parameter);
    require(
        !lost, "the update changes ", parameter.name,
        ", and the examples do not reach it: they need inputs for that part of the model, too "
        "(it takes",
        [&] {
          std::string inputs;
          for (const auto& name : source.inputs) {
            inputs.append(" ").append(name);
          }
          return inputs;
        }(),
        "), or --partial to leave that part of the update behind");
  }
}

}  // namespace theseus::transport
