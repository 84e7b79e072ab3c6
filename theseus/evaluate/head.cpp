#include "theseus/evaluate/head.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/features.h"
#include "theseus/evaluate/linear_probe.h"
#include "theseus/model/class_names.h"
#include "theseus/output/feature_space.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/side_files.h"

namespace theseus::evaluate {
namespace {

constexpr const char* kClasses = "<class>";
constexpr const char* kPooled = "pooler_output";

const model::Linear* find_classifier(const model::Architecture& architecture) {
  const auto& layers = architecture.linears;
  const auto found = std::find_if(layers.begin(), layers.end(), [](const auto& layer) {
    return std::find(layer.out.begin(), layer.out.end(), kClasses) != layer.out.end();
  });
  return found == layers.end() ? nullptr : &*found;
}

// Where a head of a model that lacks one would read: behind the activation of a pooler, which lies in no
// block, or the features.
std::string pooled_space(const model::Architecture& architecture) {
  for (const auto& [name, space] : architecture.spaces) {
    if (!space.behind.empty() && !model::is_in_block(name)) {
      return space.behind;
    }
  }
  return output::feature_space(architecture);
}

// A space with the same units before the activation function; empty: none.
std::string find_before(const model::Architecture& architecture, const std::string& space) {
  for (const auto& [name, candidate] : architecture.spaces) {
    if (candidate.behind == space) {
      return name;
    }
  }
  return {};
}

Head made(at::Tensor weight, at::Tensor bias, const std::string& space, const model::Model& model) {
  Head head{
      .weight = weight.to(at::kCPU, at::kFloat),
      .bias = bias.defined() ? bias.to(at::kCPU, at::kFloat) : at::zeros({weight.size(0)}),
      .space = space,
      .output = space == output::feature_space(model.architecture()) ? "" : kPooled,
      .classes = model::class_names(model.location().config, weight.size(0))};
  head.about = {
      {"from", model.location().weights.string()},
      {"classes", head.weight.size(0)},
      {"space", space},
      {"fitted", false}};
  return head;
}

}  // namespace

at::Tensor Head::logits(const model::Outputs& outputs, const model::Batch& batch) const {
  const auto found = outputs.find(output);
  require(
      output.empty() || found != outputs.end(), "the head reads ", output,
      ", which this model does not give: it has no pooler");
  const auto rows =
      output.empty() ? features_of(outputs, batch) : found->second.to(at::kCPU, at::kFloat);
  require(
      rows.dim() == 2 && rows.size(1) == weight.size(1), "the head reads ", weight.size(1),
      " features and the model gives ", rows.size(-1), "; was the alignment made for this target?");
  return at::addmm(bias, rows, weight.t());
}

void take_own_head(model::Model& model) {
  if (!model.weights().has(model.architecture().head + ".weight")) {
    output::take_sentence_head(output::directory_of(model.location()), model);
  }
}

Head find_head(model::Model& model) {
  take_own_head(model);
  const auto& architecture = model.architecture();
  auto& weights = model.weights();
  if (const auto* layer = find_classifier(architecture)) {
    auto weight = weights[layer->weight].to(at::kCPU, at::kFloat);
    if (const auto* low_rank = weights.find_low_rank(layer->module)) {
      weight = weight + low_rank->product().to(at::kCPU, at::kFloat);
    }
    return made(
        weight, layer->bias.empty() ? at::Tensor() : weights[layer->bias], layer->in, model);
  }
  const auto name = architecture.head + ".weight";
  if (architecture.head.empty() || !weights.has(name)) {
    return {};
  }
  const auto bias = architecture.head + ".bias";
  return made(
      weights[name], weights.has(bias) ? weights[bias] : at::Tensor(), pooled_space(architecture),
      model);
}

Head fitted_head(model::Model& model, const EvaluateOptions& options, const Watch& watch) {
  return with_context("fitting a head on the tuned source, which has none", [&] {
    const auto& from = options.training.empty() ? options.data : options.training;
    require(
        options.training != options.data,
        "it would be fitted to the examples that are measured; give --training DATA");
    const auto measured = open_data(options.data, options.split, model, options);
    const auto examples = open_training(model, options, measured);
    require(!examples.labels.empty(), from, " has no labels to fit it to");
    const auto classes = std::max<int64_t>(
        static_cast<int64_t>(examples.classes.size()),
        1 + *std::max_element(examples.labels.begin(), examples.labels.end()));
    model::Reader reader(model, options.longest);
    std::vector<at::Tensor> features, labels;
    const auto order = learnt_from(examples, measured, options);
    int64_t done = 0;
    feed(examples, order, reader, options.feed, [&](Step&& step) {
      features.push_back(features_of(model.forward(step.batch), step.batch));
      labels.push_back(labels_of(examples, step));
      done += static_cast<int64_t>(step.examples.size());
      watch(done, static_cast<int64_t>(order.size()), "fitting the head");
    });
    const auto x = at::cat(features), y = at::cat(labels);
    require((y != y[0]).any().item<bool>(), "all of its examples are of one class");
    const auto probe = fit_probe(x, y, classes, options.settings);
    auto head = made(probe.weight, probe.bias, output::feature_space(model.architecture()), model);
    head.classes = examples.classes;
    head.about["fitted"] = true;
    head.about["training"] = {
        {"data", from}, {"split", examples.split}, {"examples", order.size()}};
    for (const auto& note : note_on_fewer(
             "--training-limit", options.training_limit, std::ssize(order),
             "examples to learn from")) {
      head.about["training"]["note"] = note;
    }
    return head;
  });
}

Head carried(
    const Head& head,
    const model::Architecture& source,
    const model::Architecture& target,
    const transport::Alignment& alignment) {
  auto result = head;
  // The features of models of different depth have the same place and other names.
  result.space =
      head.space == output::feature_space(source) ? output::feature_space(target) : head.space;
  auto through = result.space;
  auto map = alignment.find_map(through);
  if (!map.defined()) {
    through = find_before(target, result.space);
    map = through.empty() ? map : alignment.find_map(through);
  }
  require(
      map.defined(), "the alignment ", alignment.directory().string(), " has no map of ",
      result.space,
      ", which the head reads; 'theseus align' makes one from examples that reach it");
  require(
      map.size(0) == head.weight.size(1), "the head reads ", head.weight.size(1),
      " features and the alignment's map of ", through, " is from ", map.size(0),
      ": it was made for another source");
  result.weight = head.weight.matmul(map.to(at::kFloat));
  result.about["through"] = through;
  result.about["alignment"] = alignment.directory().string();
  return result;
}

std::vector<std::string> notes_on_head(const Head& head) {
  std::vector<std::string> notes;
  if (head.about.value("fitted", false)) {
    notes.push_back(c10::str(
        head.about.at("from").get<std::string>(),
        " has no classification head: a linear probe was fitted on its features"));
    const auto& training = head.about.at("training");
    if (training.contains("note")) {
      notes.push_back(training.at("note"));
    }
  }
  const auto through = head.about.value("through", head.space);
  if (through != head.space) {
    notes.push_back(c10::str(
        "the alignment has no map of ", head.space,
        ", which the head reads; it went through that of ", through, ", which has the same units"));
  }
  return notes;
}

Head carry_head(
    const std::string& tuned,
    const std::string& alignment,
    const model::Model& target,
    const EvaluateOptions& options,
    const Watch& watch) {
  return with_context("carrying the head of " + tuned, [&] {
    const auto maps = transport::Alignment::open(alignment);
    const bool adapter = std::filesystem::is_directory(tuned) && update::is_adapter(tuned);
    const auto path = adapter ? maps.about().at("source").at("path").get<std::string>() : tuned;
    auto source = model::Model::open(path);
    if (adapter) {
      source.attach(update::read_adapter(tuned));
      output::take_sentence_head(tuned, source);
    }
    const auto& family = source.location().family;
    require(
        family == target.location().family, "it is of a ", family, " model, the target is a ",
        target.location().family, " model");
    auto head = find_head(source);
    if (!head.weight.defined()) {
      head = fitted_head(source, options, watch);
    }
    head.about["from"] = tuned;
    return carried(head, source.architecture(), target.architecture(), maps);
  });
}

}  // namespace theseus::evaluate
