#include "theseus/stats/supervision.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::stats {
namespace {

void require_below(const at::Tensor& labels, int64_t classes) {
  require(labels.defined(), "the examples have classes, and no labels that are among them");
  const auto wrong = labels.lt(0).logical_or(labels.ge(classes)).nonzero();  // [k, 1]
  const auto place = wrong.size(0) == 0 ? 0 : wrong[0][0].item<int64_t>();
  require(
      wrong.size(0) == 0, "label ", labels[place].item<int64_t>(), " of the examples is none of ",
      classes, " classes, 0 to ", classes - 1, "; it is that of sequence ", place);
}

}  // namespace

gradient::Loss loss_of(model::Model& model, const Calibration& calibration, Side side) {
  calibration.require_labels();
  const auto* word = side == Side::kSource ? "source" : "target";
  if (const auto classes = calibration.classes(side); classes.defined()) {
    require_below(calibration.find_answer(side, "labels"), classes.size(0));
    return gradient::prompt_loss(classes, gradient::prompt_scale(model));
  }
  if (calibration.find_answer(side, "wanted").defined()) {
    require(
        model.architecture().generation.possible,
        "the examples say which tokens are wanted, and the ", word, ", a ", model.location().family,
        " model, writes none");
    return gradient::token_loss();
  }
  const auto classes = gradient::head_classes(model);
  const bool prompts = model::takes(model.architecture().inputs, "pixel_values") &&
                       model.weights().has("logit_scale");
  require(
      classes > 0, "the examples have labels, and the ", word, ", a ", model.location().family,
      " model, ",
      prompts ? "tells classes by their names: give data that have names, or a tensor classes "
                "[c, d] with the features of their prompts beside labels"
              : "has no classification head to judge by them");
  require_below(calibration.find_answer(side, "labels"), classes);
  return gradient::class_loss();
}

}  // namespace theseus::stats
