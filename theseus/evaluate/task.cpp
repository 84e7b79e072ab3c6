#include "theseus/evaluate/task.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/gradient/labelled.h"
#include "theseus/machine/suggest.h"

namespace theseus::evaluate {

std::unique_ptr<Task> make_task(const std::string& word) {
  std::string known;
  for (const auto& [plugin, kind] : all_tasks()) {
    std::string name(plugin);
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == word || plugin == word) {
      return kind->make();
    }
    known.append(" ").append(name);
  }
  throw InputError(c10::str(
      "unknown task '", word, "'; this build has:", known, machine::did_you_mean(word, known)));
}

std::string task_for(const model::Model& model, const data::Examples& examples) {
  const auto& architecture = model.architecture();
  const bool images = static_cast<bool>(examples.image);
  const auto takes = [&](const char* input) { return model::takes(architecture.inputs, input); };
  if (images && takes("pixel_values") && (takes("text") || takes("input_ids"))) {
    return "zero-shot";
  }
  const auto& linears = architecture.linears;
  const bool brought =
      !architecture.head.empty() && model.weights().has(architecture.head + ".weight");
  if (brought || std::any_of(linears.begin(), linears.end(), [](const auto& layer) {
        return std::find(layer.out.begin(), layer.out.end(), "<class>") != layer.out.end();
      })) {
    return "classify";
  }
  if (!images && architecture.generation.possible) {
    return "perplexity";
  }
  require(
      !examples.labels.empty(),
      "this model has no head and these examples no labels: nothing to measure by; say --task");
  return "probe";
}

int64_t largest_label(const data::Examples& examples, const std::vector<int64_t>& order) {
  int64_t largest = 0;
  for (const auto place : order) {
    largest = std::max(largest, examples.labels[static_cast<size_t>(place)]);
  }
  return largest;
}

at::Tensor labels_of(const data::Examples& examples, const Step& step) {
  return gradient::labels_of(examples, step.examples);
}

}  // namespace theseus::evaluate
