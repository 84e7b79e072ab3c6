#pragma once

#include <set>
#include <string>
#include <vector>

#include "theseus/output/opened.h"
#include "theseus/stats/route.h"
#include "theseus/transport/plan.h"

namespace theseus::output {

// What becomes of every parameter of the target along `route`, given the towers that the calibration
// reaches. Throws InputError when a part of the update would be lost and options.partial does not say
// that it may.
std::vector<transport::Disposition> plan_of(
    const JobOptions& options,
    const Opened& opened,
    const stats::Route& route,
    const std::set<std::string>& towers);

// Throws InputError unless something is carried, with the reasons why nothing is.
void require_something(const Opened& opened, const std::vector<transport::Disposition>& plan);

}  // namespace theseus::output
