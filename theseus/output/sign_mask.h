#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/output/opened.h"
#include "theseus/transport/carry.h"
#include "theseus/transport/plan.h"

namespace theseus::output {

// The target's way down its loss, by which what is carried to it is masked. It is taken once, at the
// target's own weights, and lies in the unfinished work, one byte for a weight.
class SignMask {
 public:
  // From `work`, or over the calibration, which must have labels. Throws InputError when the target
  // cannot be judged by them, or the loss reaches nothing that `plan` carries.
  SignMask(
      const JobOptions& options,
      Opened& opened,
      const std::vector<transport::Disposition>& plan,
      const std::filesystem::path& work,
      const transport::Watch& watch);

  // Masks complete deltas, by the parameter's name; factors become whole tensors. What the loss does
  // not reach stays as it is.
  void apply(std::map<std::string, transport::Carried>& carried) const;

  // For the record: the loss, how many examples, what was not reached.
  nlohmann::ordered_json describe() const;
  std::vector<std::string> notes() const;

 private:
  void compute(
      Opened& opened, const std::filesystem::path& file, const transport::Watch& watch) const;

  gradient::Mask mask_;
  gradient::Vote vote_;
  std::map<std::string, const model::Parameter*> parameters_;  // that are carried
  std::shared_ptr<const checkpoint::Checkpoint> signs_;
};

}  // namespace theseus::output
