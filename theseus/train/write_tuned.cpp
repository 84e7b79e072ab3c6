#include "theseus/train/write_tuned.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/write.h"
#include "theseus/model/layers.h"
#include "theseus/output/layout.h"
#include "theseus/output/side_files.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kLongestConfig = int64_t{64} << 20;

struct Written {
  const model::Parameter* parameter = nullptr;  // null: not one of the model's
  std::string stored;                           // in the base; empty: a new head
  std::string tensor;                           // own name
};

// What transformers calls a model of this family with a classification head.
std::string class_with_head(const std::string& family) {
  static const std::map<std::string, std::string> kClasses = {
      {"bert", "BertForSequenceClassification"}, {"vit", "ViTForImageClassification"}};
  const auto found = kClasses.find(family);
  return found == kClasses.end() ? "" : found->second;
}

void set_classes(ordered_json& config, const std::string& family, const Head& head) {
  const auto count = head.classes.size();
  if (const auto word = class_with_head(family); !word.empty()) {
    ordered_json names = ordered_json::object(), places = ordered_json::object();
    for (size_t i = 0; i < count; ++i) {
      names[std::to_string(i)] = head.classes[i];
      places[head.classes[i]] = i;
    }
    config["architectures"] = {word};
    config["id2label"] = names;
    config["label2id"] = places;
    config.erase("num_labels");
    return;
  }
  config["num_classes"] = count;  // timm
  config["label_names"] = head.classes;
  for (const char* inner : {"model_args", "pretrained_cfg"}) {
    if (config.contains(inner) && config[inner].is_object() &&
        config[inner].contains("num_classes")) {
      config[inner]["num_classes"] = count;
    }
  }
}

void write_config(const model::Model& base, const Head& head, const fs::path& directory) {
  const auto& location = base.location();
  auto config = ordered_json::parse(read_text_file(location.config, kLongestConfig));
  set_classes(config, location.family, head);
  const auto& family = find_plugin(model::all_families(), "model family", location.family);
  AtomicFile file(directory / std::string(family.config_file));
  file.append(config.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  file.commit();
}

// The layout of the base, with the new head in it.
std::map<std::string, Written> with_head(
    const model::Model& base, const Head& head, output::ModelLayout& layout) {
  const auto& architecture = base.architecture();
  std::map<std::string, Written> owners;  // by the entry's name
  std::map<std::string, const model::Parameter*> parameters;
  for (const auto& parameter : architecture.parameters) {
    parameters[parameter.stored] = &parameter;
  }
  std::map<std::string, std::string> ties;  // stored copy -> tensor
  for (const auto& tie : architecture.ties) {
    ties[tie.stored] = tie.tied_to;
  }
  const bool fresh = head.kind == Head::Kind::kNew;
  const auto weight = head.module + ".weight", bias = head.module + ".bias";
  output::ModelLayout result{.files = layout.files};
  result.files.file_of.clear();
  const auto add = [&](checkpoint::Entry entry, const std::string& file, const Written& written) {
    entry.name =
        name_with_head(architecture, head, written.stored.empty() ? written.tensor : entry.name);
    result.files.file_of[entry.name] = file;
    owners[entry.name] = written;
    result.entries.push_back(entry);
  };
  for (const auto& entry : layout.entries) {
    const auto& file = layout.files.file_of.at(entry.name);
    const auto found = parameters.find(entry.name);
    const auto tie = ties.find(entry.name);
    Written written{.stored = entry.name};
    if (found != parameters.end()) {
      written.parameter = found->second;
      written.tensor = found->second->tensor;
    } else if (tie != ties.end()) {
      written.tensor = tie->second;
    }
    const bool other_head =
        std::find(architecture.not_run.begin(), architecture.not_run.end(), entry.name) !=
        architecture.not_run.end();
    const bool replaced = written.tensor == weight || written.tensor == bias;
    if (!fresh || (!replaced && !other_head)) {
      add(entry, file, written);
    }
  }
  if (fresh) {
    const auto& like = layout.entries.front();
    const auto classes = static_cast<int64_t>(head.classes.size());
    const auto& file = layout.files.file_of.at(like.name);
    add({.name = weight, .dtype = like.dtype, .shape = {classes, head.width}}, file,
        {.tensor = weight});
    add({.name = bias, .dtype = like.dtype, .shape = {classes}}, file, {.tensor = bias});
  }
  layout = std::move(result);
  return owners;
}

}  // namespace

std::string name_with_head(
    const model::Architecture& architecture, const Head& head, const std::string& name) {
  const bool prefixed =
      name.starts_with(architecture.prefix) || name.starts_with(head.module + ".");
  return head.kind == Head::Kind::kNew && !prefixed ? architecture.prefix + name : name;
}

WrittenTuned write_tuned(
    const model::Model& base, const Tensors& values, const Head& head, const fs::path& directory) {
  return with_context("writing the tuned model to " + directory.string(), [&] {
    const c10::NoGradGuard no_gradients;
    auto layout = output::layout_of(base);
    const auto owners = with_head(base, head, layout);
    double norm = 0, lost = 0;
    const auto value_of = [&](const checkpoint::Entry& entry) {
      const auto& owner = owners.at(entry.name);
      const auto found = values.find(owner.tensor);
      if (found == values.end()) {
        return base.checkpoint().tensor(owner.stored);
      }
      const auto value = found->second.detach().cpu();
      const auto stored = value.to(entry.dtype);
      require<NumericError>(
          model::all_finite(stored), entry.name, " holds NaN or infinity as ", entry.dtype);
      if (owner.parameter != nullptr) {
        const auto before = base.checkpoint().tensor(owner.stored).to(at::kDouble);
        norm += (value.to(at::kDouble) - before).square().sum().item<double>();
        lost += (value.to(at::kDouble) - stored.to(at::kDouble)).square().sum().item<double>();
      }
      return stored;
    };
    if (head.kind == Head::Kind::kNew) {
      write_config(base, head, directory);
    }
    WrittenTuned written{
        .files = checkpoint::write_checkpoint(directory, layout.files, layout.entries, value_of)};
    written.norm = std::sqrt(norm);
    written.rounding_loss = norm > 0 ? std::sqrt(lost / norm) : 0;
    return written;
  });
}

}  // namespace theseus::train
