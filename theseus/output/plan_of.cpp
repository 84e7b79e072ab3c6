#include "theseus/output/plan_of.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/output/record.h"

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

void require_something(const Opened& opened, const std::vector<transport::Disposition>& plan) {
  constexpr size_t kShown = 4;
  if (std::any_of(plan.begin(), plan.end(), [](const auto& row) { return row.carried; })) {
    return;
  }
  const auto reasons = notes_on_update(plan, opened);
  throw InputError(c10::str(
      "nothing of this update can be carried", reasons.empty() ? "" : "; ", joined(reasons, kShown),
      "; 'theseus plan' gives the reason for every parameter"));
}

}  // namespace theseus::output
