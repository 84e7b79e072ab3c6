#include "theseus/stats/prepare.h"

#include <algorithm>
#include <fstream>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/write.h"
#include "theseus/data/class_match.h"
#include "theseus/data/loader.h"
#include "theseus/gradient/loss.h"
#include "theseus/model/class_names.h"
#include "theseus/model/reader.h"

namespace theseus::stats {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

constexpr int64_t kImagesAtATime = 32;
constexpr size_t kShown = 5;

// Images of one model on their way to the file: they do not fit into memory.
class Spool {
 public:
  explicit Spool(const fs::path& path) : path_(path), file_(path, std::ios::binary) {}
  ~Spool() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void add(const at::Tensor& images) {
    const auto rows = images.contiguous();
    shape_ = rows.sizes().vec();
    count_ += rows.size(0);
    file_.write(static_cast<const char*>(rows.data_ptr()), static_cast<int64_t>(rows.nbytes()));
    require(file_.good(), "cannot write ", path_.string(), ": is the disk full?");
  }

  checkpoint::Entry entry(const std::string& name) const {
    auto shape = shape_;
    shape.at(0) = count_;
    return {.name = name, .dtype = at::kFloat, .shape = shape};
  }

  at::Tensor tensor() {
    file_.close();
    auto shape = shape_;
    shape.at(0) = count_;
    int64_t elements = 1;
    for (const auto extent : shape) {
      elements *= extent;
    }
    return at::from_file(path_.string(), /*shared=*/false, elements, at::kFloat).view(shape);
  }

 private:
  fs::path path_;
  std::ofstream file_;
  std::vector<int64_t> shape_;
  int64_t count_ = 0;
};

// `beside`: tensors that go with the images of these places. Returns what could not be decoded.
std::vector<std::string> write_images(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    const std::vector<data::Preprocessing>& views,
    const fs::path& path,
    const std::function<void(int64_t, int64_t)>& watch,
    const std::function<Tensors(const std::vector<int64_t>& places)>& beside) {
  Spool source(path.string() + ".source"), target(path.string() + ".target");
  data::ImageLoader loader(examples, order, views, kImagesAtATime, at::get_num_threads());
  std::vector<int64_t> places;
  while (const auto batch = loader.next()) {
    source.add(batch->views[0]);
    target.add(batch->views[1]);
    places.insert(places.end(), batch->examples.begin(), batch->examples.end());
    watch(static_cast<int64_t>(places.size()), static_cast<int64_t>(order.size()));
  }
  require(!places.empty(), "no image could be decoded");
  std::vector<checkpoint::Entry> entries = {
      source.entry("source/pixel_values"), target.entry("target/pixel_values")};
  std::map<std::string, at::Tensor> others;
  for (const auto& [name, tensor] : beside(places)) {
    entries.push_back({.name = name, .dtype = tensor.scalar_type(), .shape = tensor.sizes().vec()});
    others[name] = tensor;
  }
  checkpoint::write_safetensors(path, entries, [&](const checkpoint::Entry& entry) {
    return entry.name == "source/pixel_values"   ? source.tensor()
           : entry.name == "target/pixel_values" ? target.tensor()
                                                 : others.at(entry.name);
  });
  return loader.skipped();
}

// CLIP tells images by the names of their classes; other models have a head for them.
void add_class_names(
    model::Model& model,
    model::Reader& reader,
    const std::string& side,
    const data::Examples& examples,
    const std::vector<std::string>& templates,
    Tensors& tensors) {
  if (model.weights().has("logit_scale")) {
    tensors.emplace_back(
        side + "classes",
        gradient::class_features(
            model, reader, examples.classes, templates.empty() ? examples.templates : templates));
  }
}

// The examples with their classes as this model's head numbers them. CLIP tells classes by their names, and writers tell
// none. Where nothing is learnt from the labels by this model, other classes are no matter.
data::Examples numbered(
    model::Model& model,
    const data::Examples& examples,
    bool needed,
    std::vector<std::string>& notes) {
  const auto classes = gradient::head_classes(model);
  auto result = examples;
  if (!needed || classes == 0 || model.weights().has("logit_scale")) {
    return result;
  }
  const auto note = data::number_as(
      {.whose = "the head of " + model.location().weights.string(),
       .count = classes,
       .names = model::class_names(model.location().config, classes),
       .otherwise =
           ". Where only the names differ, change them in id2label of the model's config.json"},
      result);
  if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) {
    notes.push_back(note);
  }
  return result;
}

void add_labels(const at::Tensor& source, const at::Tensor& target, Tensors& tensors) {
  if (at::equal(source, target)) {
    tensors.emplace_back("labels", target);
  } else {
    tensors.emplace_back("source/labels", source);
    tensors.emplace_back("target/labels", target);
  }
}

// The labels among them, which go; undefined: there are none.
at::Tensor taken_labels(Tensors& tensors) {
  const auto found = std::find_if(
      tensors.begin(), tensors.end(), [](const auto& one) { return one.first == "labels"; });
  if (found == tensors.end()) {
    return {};
  }
  const auto labels = found->second;
  tensors.erase(found);
  return labels;
}

// What a model reads of the examples at `order`, and, with labels, what it should say.
Tensors text_inputs(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    const model::Model& model,
    model::Reader& reader,
    const Choice& choice) {
  gradient::Labelled read;
  if (choice.labels && choice.pack > 0) {
    require(gradient::is_causal(model), "texts are packed for causal models only");
    read = gradient::read_packed(examples, order, reader, choice.pack);
  } else if (choice.labels) {
    read = gradient::read_texts(examples, order, model, reader);
  } else {
    std::vector<data::Worded> texts;
    for (const auto i : order) {
      texts.push_back(data::worded(examples, examples.wording, i));
    }
    read.batch = choice.pack > 0 ? reader.packed(texts, choice.pack) : reader.texts(texts);
  }
  Tensors result;
  for (const auto& [name, tensor] : read.batch) {
    result.emplace_back(name == "text" ? "input_ids" : name, tensor);
  }
  for (const auto& [name, tensor] :
       {std::pair("labels", read.labels), std::pair("wanted", read.wanted)}) {
    if (tensor.defined()) {
      result.emplace_back(name, tensor);
    }
  }
  return result;
}

// Which text each token stands for, so that tokens of two tokenizers pair.
void add_spans(const model::Reader& reader, const std::string& side, Tensors& tensors) {
  for (const auto& [input, spans] : reader.spans()) {
    const auto* name = input == "input_ids" ? "spans" : "decoder_spans";
    tensors.emplace_back(side + name, spans);
  }
}

bool same(const Tensors& left, const Tensors& right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(), [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.sizes() == b.second.sizes() &&
               at::equal(a.second, b.second);
      });
}

// Who reads, and where to.
struct Preparation {
  const Choice& choice;
  model::Model& source;
  model::Model& target;
  const fs::path& path;
  const std::function<void(int64_t, int64_t)>& watch;
  model::Reader from{source, choice.longest}, to{target, choice.longest};
  std::vector<std::string> notes = {};  // on classes
};

// Labels, and names of classes for those that read them.
Tensors image_labels(
    Preparation& job, const data::Examples& examples, const std::vector<int64_t>& places) {
  Tensors tensors;
  if (job.choice.labels) {
    const auto& templates = job.choice.templates;
    const auto side = [&](model::Model& model, bool needed) {
      return gradient::labels_of(numbered(model, examples, needed, job.notes), places);
    };
    add_labels(side(job.source, job.choice.source_learns), side(job.target, true), tensors);
    add_class_names(job.source, job.from, "source/", examples, templates, tensors);
    add_class_names(job.target, job.to, "target/", examples, templates, tensors);
  }
  return tensors;
}

void prepare_images(
    Preparation& job,
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    ordered_json& record) {
  const auto& choice = job.choice;
  const std::pair<const char*, bool> of_texts[] = {
      {"--pack", choice.pack > 0},
      {"--wording", !choice.wording.first.empty()},
      {"--second", !choice.wording.second.empty()},
      {"--answer", !choice.wording.answer.empty()},
      {"--max-length", choice.longest > 0 && !choice.labels}};
  for (const auto& [option, given] : of_texts) {
    require(!given, option, " is for texts, and these are images");
  }
  const bool prompts =
      job.source.weights().has("logit_scale") || job.target.weights().has("logit_scale");
  require(
      choice.templates.empty() || prompts,
      "--template is for models of images and text, and neither of these reads class names");
  const auto skipped = write_images(
      examples, order, {job.from.images(), job.to.images()}, job.path, job.watch,
      [&](const std::vector<int64_t>& places) { return image_labels(job, examples, places); });
  record["images"] = {{"source", job.from.images().origin}, {"target", job.to.images().origin}};
  record["left_out"] = skipped.size();
  if (!skipped.empty()) {
    record["left_out_names"] = joined(skipped, kShown);
  }
}

void prepare_texts(
    Preparation& job,
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    ordered_json& record) {
  const auto& choice = job.choice;
  require(choice.templates.empty(), "--template is for images that CLIP tells by their classes");
  require(
      choice.wording.answer.empty() || job.target.architecture().generation.possible,
      "--answer is for models that write text, and this one does not");
  const auto read = [&](model::Model& model, model::Reader& reader, bool needed) {
    return text_inputs(
        choice.labels ? numbered(model, examples, needed, job.notes) : examples, order, model,
        reader, choice);
  };
  auto tensors = read(job.source, job.from, choice.source_learns);
  auto other = read(job.target, job.to, true);
  const auto labels = taken_labels(tensors), other_labels = taken_labels(other);
  const bool shared = same(tensors, other);
  if (choice.pack > 0) {
    require(
        shared,
        "--pack: the tokenizers of the two models differ, and so do the texts in a row; leave it "
        "out");
    record["pack"] = choice.pack;
    record["dropped_tokens"] = job.from.dropped();
  }
  if (!shared) {
    for (auto& [name, tensor] : tensors) {
      name = "source/" + name;
    }
    for (const auto& [name, tensor] : other) {
      tensors.emplace_back("target/" + name, tensor);
    }
    add_spans(job.from, "source/", tensors);
    add_spans(job.to, "target/", tensors);
  }
  if (labels.defined() && other_labels.defined()) {
    add_labels(labels, other_labels, tensors);
  } else if (labels.defined() || other_labels.defined()) {
    tensors.emplace_back(
        labels.defined() ? "source/labels" : "target/labels",
        labels.defined() ? labels : other_labels);
  }
  checkpoint::write_safetensors(job.path, tensors);
  record["tokenizers"] = {
      {"source", job.from.tokenizer().words()}, {"target", job.to.tokenizer().words()}};
  if (!choice.labels && !choice.wording.answer.empty() && gradient::is_causal(job.target)) {
    record["answers_left_out"] = true;
  }
  record["truncated"] = job.from.truncated() + job.to.truncated();
  record["longest"] = (job.from.truncated() > 0 ? job.from : job.to).limit_words();
  job.watch(1, 1);
}

}  // namespace

data::Draw draw(const data::Examples& examples, const Choice& choice) {
  const auto& sampling = choice.sampling;
  if (choice.shots > 0) {
    return data::draw_per_class(examples, choice.shots, sampling.seed);
  }
  const auto wanted = sampling.wanted();
  if (wanted == 0 || wanted >= examples.size()) {
    auto all = data::draw_all(examples);
    all.fewer = sampling.fewer(examples.size(), "examples");
    return all;
  }
  return sampling.batches > 0
             ? data::draw_batches(examples, sampling.batches, sampling.batch_size, sampling.seed)
             : data::draw_some(examples, wanted, sampling.seed);
}

bool is_prepared(const std::string& words) {
  return words.ends_with(".safetensors") || words.ends_with(".pt") || words.ends_with(".bin");
}

ordered_json prepare_calibration(
    const Choice& choice,
    model::Model& source,
    model::Model& target,
    const fs::path& path,
    const std::function<void(int64_t done, int64_t all)>& watch) {
  return with_context("preparing the examples of " + choice.data, [&] {
    auto examples =
        data::open_examples(choice.data, choice.split.empty() ? data::kNotTest : choice.split);
    require(examples.size() > 0, "it holds no examples");
    const auto drawn = draw(examples, choice);
    Preparation job{choice, source, target, path, watch};
    auto record = data::describe(drawn, examples);
    record["data"] = choice.data;
    if (examples.image) {
      prepare_images(job, examples, drawn.order, record);
    } else {
      examples.wording = model::wording_for(source, examples, choice.wording);
      prepare_texts(job, examples, drawn.order, record);
    }
    if (!job.notes.empty()) {
      record["notes"] = job.notes;
    }
    return record;
  });
}

}  // namespace theseus::stats
