#include "theseus/output/plan_of.h"

#include <algorithm>

#include "theseus/base/error.h"

namespace theseus::output {

std::vector<transport::Disposition> plan_of(
    const JobOptions& options,
    const Opened& opened,
    const stats::Route& route,
    const std::set<std::string>& towers) {
  auto plan = transport::make_plan(
      opened.source, opened.target, route,
      {.norms = options.norms, .heads = options.heads, .towers = towers});
  if (opened.update) {
    if (!options.partial) {
      transport::require_reached(plan, *opened.update, opened.source.architecture());
    }
    transport::leave_unchanged(plan, *opened.update, opened.source.architecture(), route);
  }
  return plan;
}

void require_something(const std::vector<transport::Disposition>& plan) {
  const bool any =
      std::any_of(plan.begin(), plan.end(), [](const auto& row) { return row.carried; });
  require(
      any,
      "nothing of this update can be carried: what it changes is left alone by default; "
      "'theseus plan' gives the reason for every parameter");
}

}  // namespace theseus::output
