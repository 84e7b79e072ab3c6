#include "theseus/train/head.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/machine/suggest.h"
#include "theseus/model/class_names.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/side_files.h"
#include "theseus/train/random_values.h"

namespace theseus::train {
namespace {

constexpr uint64_t kStream = 1;  // of random numbers
constexpr double kDeviation = 0.02;

// The layer onto classes that the checkpoint has, or null.
const model::Linear* find_own(const model::Architecture& architecture) {
  const auto& layers = architecture.linears;
  const auto found = std::find_if(layers.begin(), layers.end(), [](const auto& layer) {
    return std::find(layer.out.begin(), layer.out.end(), "<class>") != layer.out.end();
  });
  return found == layers.end() ? nullptr : &*found;
}

const model::Parameter& parameter_of(
    const model::Architecture& architecture, const std::string& tensor) {
  return *std::find_if(
      architecture.parameters.begin(), architecture.parameters.end(),
      [&](const auto& parameter) { return parameter.tensor == tensor; });
}

bool has_two_towers(const model::Architecture& architecture) {
  const auto& towers = architecture.towers;
  return std::any_of(towers.begin(), towers.end(), [](const auto& t) { return t.image > 0; }) &&
         std::any_of(towers.begin(), towers.end(), [](const auto& t) { return t.vocabulary > 0; });
}

std::vector<std::string> names_of_classes(const data::Examples& examples) {
  auto names = examples.classes;
  const auto most = *std::max_element(examples.labels.begin(), examples.labels.end());
  for (auto i = static_cast<int64_t>(names.size()); i <= most; ++i) {
    names.push_back(c10::str(i));
  }
  return names;
}

Head new_head(const model::Model& model, const data::Examples& examples) {
  const auto& architecture = model.architecture();
  require(!examples.labels.empty(), "--head new: these examples have no labels to learn from");
  Head head{.kind = Head::Kind::kNew, .classes = names_of_classes(examples)};
  if (const auto* own = find_own(architecture)) {
    const auto& shape = parameter_of(architecture, own->weight).shape;
    head.module = own->module;
    head.replaced = shape.at(0);
    head.width = shape.at(1);
    return head;
  }
  require(
      !architecture.head.empty(), "--head new: a ", model.location().family,
      " model holds no classification head",
      architecture.generation.possible
          ? "; it writes its answers: give --wording and --answer, and --head keep"
      : has_two_towers(architecture) ? "; it classifies by prompts: --head zero-shot"
                                     : "");
  head.module = architecture.head;
  head.width = architecture.head_width;
  head.beside = architecture.head_task == model::kBareEncoder;
  return head;
}

// A head that lies beside a bare encoder.
std::optional<Head> find_beside(const model::Model& model) {
  const auto& architecture = model.architecture();
  if (architecture.head_task != model::kBareEncoder) {
    return std::nullopt;
  }
  const auto found = output::find_sentence_head(output::directory_of(model.location()));
  if (!found) {
    return std::nullopt;
  }
  Head head{
      .kind = Head::Kind::kKeep,
      .beside = true,
      .module = architecture.head,
      .width = architecture.head_width,
      .classes = found->classes,
      .told = found->weight.size(0),
      .weight = found->weight,
      .bias = found->bias};
  require(
      head.weight.size(1) == head.width, "the head beside the model reads ", head.weight.size(1),
      " numbers and the model gives ", head.width);
  for (auto i = static_cast<int64_t>(head.classes.size()); i < head.weight.size(0); ++i) {
    head.classes.push_back(c10::str(i));
  }
  return head;
}

void require_classes(int64_t classes, const data::Examples& examples) {
  const auto found = static_cast<int64_t>(examples.classes.size());
  require(
      found == 0 || found == classes, "the model's head has ", classes, " classes and the data ",
      found, "; use --head new for a head onto these");
}

Head own_head(const model::Model& model, const data::Examples& examples) {
  const auto& architecture = model.architecture();
  const auto* own = find_own(architecture);
  require(
      own != nullptr || architecture.generation.possible, "--head keep: this ",
      model.location().family, " model has no head to keep",
      architecture.head.empty() ? "" : "; use --head new");
  if (own == nullptr) {
    return {.kind = Head::Kind::kKeep};
  }
  const auto told = parameter_of(architecture, own->weight).shape.at(0);
  require_classes(told, examples);
  return {
      .kind = Head::Kind::kKeep,
      .classes = model::class_names(model.location().config, told),
      .told = told};
}

}  // namespace

Head choose_head(
    const std::string& word, const model::Model& model, const data::Examples& examples) {
  require(
      word.empty() || word == "new" || word == "zero-shot" || word == "keep", "--head: '", word,
      "' is none of: new zero-shot keep", machine::did_you_mean(word, "new zero-shot keep"));
  const auto& architecture = model.architecture();
  const bool prompts = examples.image && has_two_towers(architecture);
  if (word == "zero-shot" || (word.empty() && prompts)) {
    require(
        prompts,
        "--head zero-shot: this needs images and a model of images and text, such as CLIP");
    return {.kind = Head::Kind::kZeroShot};
  }
  const auto beside = find_beside(model);
  if (beside && word != "new") {
    require_classes(beside->weight.size(0), examples);
    return *beside;
  }
  const bool headless = find_own(architecture) == nullptr && !architecture.head.empty();
  if (word == "new" || (word.empty() && headless)) {
    return new_head(model, examples);
  }
  return own_head(model, examples);
}

void begin_head(const Head& head, uint64_t seed, gradient::Trainable& trainable) {
  if (head.weight.defined()) {
    trainable.train(head.module + ".weight", head.weight);
    trainable.train(head.module + ".bias", head.bias);
    return;
  }
  const auto classes = static_cast<int64_t>(head.classes.size());
  trainable.train(
      head.module + ".weight", random_normal({classes, head.width}, kDeviation, seed, kStream));
  trainable.train(head.module + ".bias", at::zeros({classes}));
}

}  // namespace theseus::train
