#pragma once

#include <set>
#include <string>
#include <vector>

#include "theseus/model/model.h"
#include "theseus/transport/solve.h"
#include "theseus/transport/source_update.h"

namespace theseus::transport {

// What happens to gains and shifts of norms. kDiagonal: a gain stays a gain,
// delta[j] = sum_i T_out[i, j] T_in[i, j] delta[i]. kRotate: gains are carried like biases, as the
// public reference does. Shifts are carried like biases in both. kSkip: neither.
enum class Norms { kDiagonal, kRotate, kSkip };

// What becomes of one parameter of the target, and why.
struct Disposition {
  const model::Parameter* target = nullptr;
  const model::Parameter* source =
      nullptr;  // the same place in one of the source's blocks, or null
  bool carried = false;
  std::string reason;
  std::vector<std::string> maps;  // the space of each axis that has a map; for a diagonal: out, in
  bool diagonal = false;
};

struct PlanOptions {
  Norms norms = Norms::kDiagonal;
  bool heads = false;            // also heads onto labels or the vocabulary, where sizes agree
  std::set<std::string> towers;  // that the calibration reaches
};

// One row for every parameter of the target, in the target's order.
std::vector<Disposition> make_plan(
    const model::Model& source,
    const model::Model& target,
    const stats::Route& route,
    const PlanOptions& options);

// Every space that the carried ones among `plan` need a map of.
SpaceSet spaces_of(const std::vector<Disposition>& plan);

// One parameter that is carried.
struct Load {
  const model::Parameter* source = nullptr;
  const model::Parameter* target = nullptr;
  int64_t rank = 0;  // of its factors; 0: a whole delta
};

// Everything that is carried. `update`: null when it is not known yet; then deltas are whole.
std::vector<Load> loads_of(const std::vector<Disposition>& plan, const SourceUpdate* update);

// The source's parameters whose deltas go into a carried one.
std::vector<const model::Parameter*> sources_of(
    const Disposition& row, const model::Architecture& source, const stats::Route& route);

// Parameters that no part of the update goes to are no longer carried, so nothing is computed for
// them. Reads the update.
void leave_unchanged(
    std::vector<Disposition>& plan,
    const SourceUpdate& update,
    const model::Architecture& source,
    const stats::Route& route);

// Refuses, by name, an update of which a part would be lost because the calibration does not reach
// its tower.
void require_reached(
    const std::vector<Disposition>& plan,
    const SourceUpdate& update,
    const model::Architecture& source);

}  // namespace theseus::transport
