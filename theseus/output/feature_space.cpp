#include "theseus/output/feature_space.h"

#include "theseus/base/error.h"

namespace theseus::output {

std::string feature_space(const model::Architecture& architecture) {
  constexpr const char* kJoint = "embed";
  if (architecture.spaces.contains(kJoint)) {
    return kJoint;
  }
  const auto& tower = architecture.towers.front().name;
  for (auto norm = architecture.norms.rbegin(); norm != architecture.norms.rend(); ++norm) {
    if (model::tower_of_space(norm->out) == tower) {
      return norm->out;
    }
  }
  throw InternalError("no norm writes what the tower " + tower + " gives");
}

}  // namespace theseus::output
