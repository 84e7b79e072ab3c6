// What a calibration says that the models should say.

#include <algorithm>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/stats/calibration.h"

namespace theseus::stats {
namespace {

const std::map<std::string, std::string> kAnswers = {
    {"label", "labels"}, {"labels", "labels"}, {"wanted", "wanted"}};

}  // namespace

bool Calibration::take_answer(const checkpoint::Checkpoint& file, const std::string& name) {
  const bool for_source = !name.starts_with("target/"), for_target = !name.starts_with("source/");
  const auto bare = for_source && for_target ? name : name.substr(7);
  const auto answer = kAnswers.find(bare);
  if (answer == kAnswers.end() && bare != "classes") {
    return false;
  }
  const auto value = file.tensor(name);
  for (const auto& [meant, answers, classes] :
       {std::tuple(for_source, &source_answers_, &source_classes_),
        std::tuple(for_target, &target_answers_, &target_classes_)}) {
    if (meant) {
      (answer == kAnswers.end() ? *classes : (*answers)[answer->second]) = value;
    }
  }
  return true;
}

void Calibration::require_labels() const {
  const auto check = [](const char* side, const model::Batch& inputs, const model::Batch& answers,
                        const at::Tensor& classes) {
    require(
        !answers.empty(), "the examples have no labels for the ", side,
        ": a file of tensors needs labels [n] (or wanted [n, t]) beside its inputs, and data need "
        "labels of their own");
    for (const auto& answer : answers) {
      const auto& tensor = answer.second;
      const bool labels = answer.first == "labels";
      const bool fits = std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
        return labels ? tensor.dim() == 1 && input.second.size(0) == tensor.size(0)
                      : input.second.sizes() == tensor.sizes();
      });
      require(
          fits && tensor.scalar_type() == at::kLong, "the tensor ", answer.first, " is ",
          tensor.scalar_type(), " ", tensor.sizes(), ", expected int64 ",
          labels ? "[n] with as many as there are sequences" : "of the shape of the ids");
    }
    require(
        !classes.defined() || (classes.dim() == 2 && classes.is_floating_point() &&
                               classes.isfinite().all().item<bool>()),
        "the tensor classes must be a finite row of features for each class name");
  };
  check("source", source_, source_answers_, source_classes_);
  check("target", target_, target_answers_, target_classes_);
}

gradient::Labelled Calibration::labelled(Side side, int64_t batch) const {
  const bool source = side == Side::kSource;
  const auto answers = cut(source ? source_answers_ : target_answers_, batch);
  gradient::Labelled result;
  for (const auto& [name, tensor] : answers) {
    (name == "labels" ? result.labels : result.wanted) = tensor;
  }
  const auto& whole = source ? source_ : target_;
  const auto count = (source ? source_answers_ : target_answers_).begin()->second.size(0);
  const bool images = classes(side).defined();  // texts beside them are other sequences
  for (const auto& [name, tensor] : cut(whole, batch)) {
    if (whole.at(name).size(0) == count && (!images || name == "pixel_values")) {
      result.batch[name] = tensor;
    }
  }
  return result;
}

at::Tensor Calibration::find_answer(Side side, const std::string& name) const {
  const auto& answers = side == Side::kSource ? source_answers_ : target_answers_;
  const auto found = answers.find(name);
  return found == answers.end() ? at::Tensor() : found->second;
}

at::Tensor Calibration::classes(Side side) const {
  return side == Side::kSource ? source_classes_ : target_classes_;
}

}  // namespace theseus::stats
