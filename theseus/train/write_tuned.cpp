#include "theseus/train/write_tuned.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/write.h"
#include "theseus/model/layers.h"
#include "theseus/output/class_names.h"
#include "theseus/output/config_file.h"
#include "theseus/output/layout.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/side_files.h"
#include "theseus/output/text_file.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kLongestConfig = int64_t{64} << 20;
// Of an earlier training, where the base is one.
const std::set<std::string> kOurs = {
    output::kRecordFile, "losses.jsonl", output::kRecipeFile, "README.md"};

// What is written under one name.
struct Source {
  std::string stored;                           // the base's name of it; empty: the base has none
  std::string tensor;                           // own name, of the values; empty: not the model's
  const model::Parameter* parameter = nullptr;  // null: a copy of another, or none
};

// What transformers calls a model of this family with a classification head.
std::string class_with_head(const std::string& family) {
  static const std::map<std::string, std::string> kClasses = {
      {"bert", "BertForSequenceClassification"}, {"vit", "ViTForImageClassification"}};
  const auto found = kClasses.find(family);
  return found == kClasses.end() ? "" : found->second;
}

// Whether the model's own files are to hold a head that they lack.
bool is_put_in(const Head& head) {
  return head.kind == Head::Kind::kNew && !head.beside;
}

bool is_of_head(const Head& head, const std::string& tensor) {
  return tensor == head.module + ".weight" || tensor == head.module + ".bias";
}

// "module.": what a wrapper put before every name, which no library would read.
std::string wrapper_of(const model::Architecture& architecture) {
  for (const auto& parameter : architecture.parameters) {
    if (parameter.stored.ends_with(parameter.tensor)) {
      return parameter.stored.substr(0, parameter.stored.size() - parameter.tensor.size());
    }
  }
  return {};
}

void set_classes(ordered_json& config, const std::string& family, const Head& head) {
  if (const auto word = class_with_head(family); !word.empty()) {
    if (is_put_in(head)) {
      config["architectures"] = {word};
    }
    output::set_class_names(config, head.classes, /*timm=*/false);
    return;
  }
  config["num_classes"] = head.classes.size();
  output::set_class_names(config, head.classes, /*timm=*/true);
  for (const char* inner : {"model_args", "pretrained_cfg"}) {
    if (config.contains(inner) && config[inner].is_object() &&
        config[inner].contains("num_classes")) {
      config[inner]["num_classes"] = head.classes.size();
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

// The base's layout with a head of its own or a new one.
class TunedLayout {
 public:
  TunedLayout(const model::Model& base, const Head& head, output::ModelLayout from)
      : architecture_(base.architecture()), head_(head), from_(std::move(from)) {
    layout.files = from_.files;
    layout.files.file_of.clear();
    for (const auto& entry : from_.entries) {
      if (const auto source = source_of(entry.name); is_wanted(source)) {
        add(entry, from_.files.file_of.at(entry.name), source);
      }
    }
    if (is_put_in(head)) {
      add_head();
    }
  }

  output::ModelLayout layout;
  std::map<std::string, Source> sources;  // by the entry's name

 private:
  Source source_of(const std::string& stored) const {
    for (const auto& parameter : architecture_.parameters) {
      if (parameter.stored == stored) {
        return {.stored = stored, .tensor = parameter.tensor, .parameter = &parameter};
      }
    }
    for (const auto& tie : architecture_.ties) {
      if (tie.stored == stored) {
        return {.stored = stored, .tensor = tie.tied_to};
      }
    }
    return {.stored = stored};
  }

  bool is_wanted(const Source& source) const {
    const auto& others = architecture_.not_run;
    const bool head = is_of_head(head_, source.tensor) ||
                      std::find(others.begin(), others.end(), source.stored) != others.end();
    return !is_put_in(head_) || !head;
  }

  void add(checkpoint::Entry entry, const std::string& file, const Source& source) {
    const auto wrapper = is_put_in(head_) ? wrapper_of(architecture_) : std::string();
    const bool wrapped = !source.stored.empty() && entry.name.starts_with(wrapper);
    entry.name = name_with_head(
        architecture_, head_, wrapped ? entry.name.substr(wrapper.size()) : entry.name);
    layout.files.file_of[entry.name] = file;
    sources[entry.name] = source;
    layout.entries.push_back(std::move(entry));
  }

  // In the dtype of the other weights, and beside one of them.
  void add_head() {
    const auto like = std::find_if(
        from_.entries.begin(), from_.entries.end(),
        [](const auto& entry) { return at::isFloatingType(entry.dtype); });
    const auto& file = from_.files.file_of.at(like->name);
    const auto classes = static_cast<int64_t>(head_.classes.size());
    const auto weight = head_.module + ".weight", bias = head_.module + ".bias";
    add({.name = weight, .dtype = like->dtype, .shape = {classes, head_.width}}, file,
        {.tensor = weight});
    add({.name = bias, .dtype = like->dtype, .shape = {classes}}, file, {.tensor = bias});
  }

  const model::Architecture& architecture_;
  const Head& head_;
  output::ModelLayout from_;
};

at::Tensor rounded(const at::Tensor& value, const checkpoint::Entry& entry) {
  auto stored = value.to(entry.dtype);
  require<NumericError>(
      !at::isFloatingType(entry.dtype) || model::all_finite(stored), entry.name,
      " holds NaN or infinity as ", entry.dtype);
  return stored;
}

// All of what the base's tensors learnt, as `layout` would hold it. A new head begins at random, and what it replaces
// says nothing of what it learnt.
output::Addition all_learnt(
    const model::Model& base,
    const Tensors& values,
    const Head& head,
    const output::ModelLayout& layout) {
  std::map<std::string, std::string> tensors;  // by stored name
  for (const auto& parameter : base.architecture().parameters) {
    tensors[parameter.stored] = parameter.tensor;
  }
  output::Addition all;
  for (const auto& entry : layout.entries) {
    const auto tensor = tensors.find(entry.name);
    const auto value = tensor == tensors.end() ? values.end() : values.find(tensor->second);
    if (value == values.end() || (is_put_in(head) && is_of_head(head, tensor->second))) {
      continue;
    }
    const auto before = base.checkpoint().tensor(entry.name);
    all.add(addition_of(before, value->second.detach().cpu(), entry.dtype));
  }
  return all;
}

}  // namespace

output::Addition addition_of(
    const at::Tensor& before, const at::Tensor& value, at::ScalarType dtype) {
  const auto was = before.to(at::kDouble), now = value.to(at::kDouble);
  const auto stored = value.to(dtype).to(at::kDouble);
  const auto square = [](const at::Tensor& tensor) { return tensor.square().sum().item<double>(); };
  return {
      .norm_squared = square(now - was),
      .lost_squared = square(now - stored),
      .arrived_squared = square(stored - was),
      .base_squared = square(was)};
}

std::string name_with_head(
    const model::Architecture& architecture, const Head& head, const std::string& name) {
  const bool prefixed =
      name.starts_with(architecture.prefix) || name.starts_with(head.module + ".");
  return is_put_in(head) && !prefixed ? architecture.prefix + name : name;
}

WrittenTuned write_tuned(
    const model::Model& base,
    const Tensors& values,
    const Head& head,
    output::OutputDtype dtype,
    const fs::path& directory) {
  return with_context("writing the tuned model to " + directory.string(), [&] {
    const c10::NoGradGuard no_gradients;
    const auto storage = output::choose_storage(base, dtype, [&](const output::ModelLayout& own) {
      return all_learnt(base, values, head, own);
    });
    const TunedLayout tuned(base, head, storage.layout);
    output::Addition learnt;
    const auto value_of = [&](const checkpoint::Entry& entry) {
      const auto& source = tuned.sources.at(entry.name);
      const auto found = values.find(source.tensor);
      if (found == values.end()) {
        const auto copied = base.checkpoint().tensor(source.stored);
        return copied.scalar_type() == entry.dtype ? copied : rounded(copied, entry);
      }
      const auto value = found->second.detach().cpu();
      const auto stored = rounded(value, entry);
      if (source.parameter != nullptr) {
        learnt.add(addition_of(base.checkpoint().tensor(source.stored), value, entry.dtype));
      }
      return stored;
    };
    if (head.added()) {
      write_config(base, head, directory);
    }
    if (head.beside) {
      output::write_sentence_head(
          {.weight = values.at(head.module + ".weight"),
           .bias = values.at(head.module + ".bias"),
           .classes = head.classes},
          directory);
    }
    WrittenTuned written{
        .files = checkpoint::write_checkpoint(
            directory, tuned.layout.files, tuned.layout.entries, value_of)};
    written.left_out = output::copy_side_files(base, directory, kOurs).left_out;
    written.learnt = learnt;
    written.dtype = storage.written;
    written.storage = output::describe_storage(storage, learnt.lost());
    written.notes = output::notes_on_storage(storage, learnt.lost(), "base");
    const auto corrected =
        output::set_config_dtype(base, directory, output::dtype_name(storage.written));
    written.notes.insert(written.notes.end(), corrected.begin(), corrected.end());
    return written;
  });
}

}  // namespace theseus::train
