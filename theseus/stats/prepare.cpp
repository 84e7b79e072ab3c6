#include "theseus/stats/prepare.h"

#include <algorithm>
#include <fstream>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/write.h"
#include "theseus/data/loader.h"
#include "theseus/data/sampling.h"
#include "theseus/model/reader.h"

namespace theseus::stats {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

constexpr int64_t kImagesAtATime = 32;
constexpr size_t kShown = 5;

data::Draw draw(const data::Examples& examples, const Choice& choice) {
  if (choice.shots > 0) {
    return data::draw_per_class(examples, choice.shots, choice.seed);
  }
  if (choice.batches > 0) {
    return data::draw_batches(examples, choice.batches, choice.batch_size, choice.seed);
  }
  return data::draw_all(examples);
}

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

// Returns what could not be decoded.
std::vector<std::string> write_images(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    const std::vector<data::Preprocessing>& views,
    const fs::path& path,
    const std::function<void(int64_t, int64_t)>& watch) {
  Spool source(path.string() + ".source"), target(path.string() + ".target");
  data::ImageLoader loader(examples, order, views, kImagesAtATime, at::get_num_threads());
  int64_t done = 0;
  while (const auto batch = loader.next()) {
    source.add(batch->views[0]);
    target.add(batch->views[1]);
    done += static_cast<int64_t>(batch->examples.size());
    watch(done, static_cast<int64_t>(order.size()));
  }
  require(done > 0, "no image could be decoded");
  checkpoint::write_safetensors(
      path, {source.entry("source/pixel_values"), target.entry("target/pixel_values")},
      [&](const checkpoint::Entry& entry) {
        return entry.name.starts_with("source/") ? source.tensor() : target.tensor();
      });
  return loader.skipped();
}

Tensors text_inputs(model::Reader& reader, const std::vector<data::Worded>& texts) {
  Tensors result;
  for (const auto& [name, tensor] : reader.texts(texts)) {
    result.emplace_back(name == "text" ? "input_ids" : name, tensor);
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

}  // namespace

bool is_prepared(const std::string& words) {
  return words.ends_with(".safetensors") || words.ends_with(".pt") || words.ends_with(".bin");
}

ordered_json prepare_calibration(
    const Choice& choice,
    const model::Model& source,
    const model::Model& target,
    const fs::path& path,
    const std::function<void(int64_t done, int64_t all)>& watch) {
  return with_context("preparing the calibration from " + choice.data, [&] {
    const auto examples =
        data::open_examples(choice.data, choice.split.empty() ? data::kNotTest : choice.split);
    require(examples.size() > 0, "it holds no examples");
    const auto drawn = draw(examples, choice);
    model::Reader from(source, choice.longest), to(target, choice.longest);
    auto record = data::describe(drawn, examples);
    record["data"] = choice.data;
    if (examples.image) {
      const auto skipped =
          write_images(examples, drawn.order, {from.images(), to.images()}, path, watch);
      record["images"] = {{"source", from.images().origin}, {"target", to.images().origin}};
      record["left_out"] = skipped.size();
      if (!skipped.empty()) {
        record["left_out_names"] = joined(skipped, kShown);
      }
      return record;
    }
    const auto wording = model::wording_for(source, examples);
    std::vector<data::Worded> texts;
    for (const auto i : drawn.order) {
      texts.push_back(data::worded(examples, wording, i));
    }
    auto tensors = text_inputs(from, texts);
    const auto other = text_inputs(to, texts);
    if (!same(tensors, other)) {
      for (auto& [name, tensor] : tensors) {
        name = "source/" + name;
      }
      for (const auto& [name, tensor] : other) {
        tensors.emplace_back("target/" + name, tensor);
      }
      add_spans(from, "source/", tensors);
      add_spans(to, "target/", tensors);
    }
    checkpoint::write_safetensors(path, tensors);
    record["tokenizers"] = {
        {"source", from.tokenizer().words()}, {"target", to.tokenizer().words()}};
    record["truncated"] = from.truncated() + to.truncated();
    watch(1, 1);
    return record;
  });
}

}  // namespace theseus::stats
