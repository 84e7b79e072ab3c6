#include "theseus/output/sign_mask.h"

#include <cmath>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/checked.h"
#include "theseus/output/supervision.h"
#include "theseus/output/work_directory.h"
#include "theseus/stats/supervision.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeasured = "|measured";  // loss, count, right; no tensor is called so

}  // namespace

SignMask::SignMask(
    const JobOptions& options,
    Opened& opened,
    const std::vector<transport::Disposition>& plan,
    const fs::path& work,
    const transport::Watch& watch)
    : mask_(mask_of(options)), vote_(options.vote) {
  for (const auto& row : plan) {
    if (row.carried) {
      parameters_[row.target->name] = row.target;
    }
  }
  const auto file = work / kSignsFile;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    with_context("taking the target's gradients", [&] { compute(opened, file, watch); });
  }
  signs_ = std::make_shared<const checkpoint::Checkpoint>(checkpoint::open_checked(file));
}

void SignMask::compute(Opened& opened, const fs::path& file, const transport::Watch& watch) const {
  const auto& calibration = *opened.find_labelled();
  auto loss = stats::loss_of(opened.target, calibration, stats::Side::kTarget);
  const bool images = calibration.labelled(stats::Side::kTarget, 0).batch.contains("pixel_values");
  const auto reached = gradient::tensors_reached(opened.target.architecture(), images);
  std::set<std::string> tensors;
  for (const auto& [name, parameter] : parameters_) {
    if (std::find(reached.begin(), reached.end(), parameter->tensor) != reached.end()) {
      tensors.insert(parameter->tensor);
    }
  }
  constexpr const char* kNothing =
      "the loss reaches nothing that is carried: labels and update belong to other parts of the "
      "model";
  require(!tensors.empty(), kNothing);
  gradient::Signs signs(opened.target, std::move(loss), {tensors.begin(), tensors.end()}, vote_);
  for (int64_t batch = 0; batch < calibration.batches(); ++batch) {
    watch(
        static_cast<double>(batch), static_cast<double>(calibration.batches()),
        "the target's gradients");
    const auto labelled = calibration.labelled(stats::Side::kTarget, batch);
    if (!labelled.batch.empty() && labelled.asked() > 0) {
      signs.add(labelled);
    }
  }
  const auto measured = signs.measured();
  const auto found = signs.result();
  require(!found.empty(), kNothing);
  std::vector<std::pair<std::string, at::Tensor>> entries(found.begin(), found.end());
  entries.emplace_back(
      kMeasured,
      at::tensor(
          {measured.loss, static_cast<double>(measured.count), static_cast<double>(measured.right)},
          at::kDouble));
  checkpoint::write_checked(file, entries);
}

void SignMask::apply(std::map<std::string, transport::Carried>& carried) const {
  for (auto& [name, one] : carried) {
    const auto& parameter = *parameters_.at(name);
    if (signs_->find(parameter.tensor) == nullptr) {
      continue;
    }
    const auto whole = signs_->tensor(parameter.tensor);
    const auto signs =
        parameter.fused() ? whole.narrow(0, parameter.row, parameter.shape.front()) : whole;
    const auto delta = one.dense();
    one.agreement = gradient::agreement(delta, signs);
    one.delta = gradient::masked(delta, signs, mask_).contiguous();
    one.factors.reset();
    one.target_norm = std::sqrt(one.delta.to(at::kDouble).square().sum().item<double>());
  }
}

nlohmann::ordered_json SignMask::describe() const {
  const auto measured = signs_->tensor(kMeasured);
  return {
      {"mask", mask_ == gradient::Mask::kNormal ? "normal" : "force"},
      {"vote", vote_ == gradient::Vote::kMean ? "mean" : "majority"},
      {"loss", measured[0].item<double>()},
      {"asked", static_cast<int64_t>(measured[1].item<double>())},
      {"right", static_cast<int64_t>(measured[2].item<double>())}};
}

std::vector<std::string> SignMask::notes() const {
  std::map<std::string, int64_t> roles;
  for (const auto& [name, parameter] : parameters_) {
    if (signs_->find(parameter->tensor) == nullptr) {
      ++roles[model::role_of(name)];
    }
  }
  std::vector<std::string> notes;
  for (const auto& [role, count] : roles) {
    notes.push_back(c10::str(
        role, count > 1 ? c10::str(" (", count, " times)") : "",
        ": the loss does not reach it, so it is carried without a mask"));
  }
  return notes;
}

}  // namespace theseus::output
