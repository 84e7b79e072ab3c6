// The first byte ('a', 'b', ...) chooses the file that the rest is the text of: the config of a
// family's model, or another JSON file that is read with a model. The weights are those of a test
// case. A config that opens is also run.
#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/model/model.h"

#include "tests/support/scratch_dir.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace theseus {
namespace {

namespace fs = std::filesystem;

struct Target {
  std::string_view case_folder;  // in tests/
  std::string_view file;         // what is written into a copy of it
};
constexpr std::array<Target, 13> kTargets = {{
    {"golden/cases/bert_bare", "config.json"},
    {"golden/cases/adapted_bert", "config.json"},
    {"golden/cases/clip_legacy_end", "config.json"},
    {"golden/cases/llama3_rope", "config.json"},
    {"golden/cases/qwen3_bias", "config.json"},
    {"fixtures/openclip", "open_clip_config.json"},
    {"golden/cases/t5_tied_gated_silu", "config.json"},
    {"golden/cases/t5_own_head", "config.json"},
    {"golden/cases/timm_headless", "config.json"},
    {"golden/cases/vit_bare", "config.json"},
    {"golden/cases/mistral", "generation_config.json"},
    {"golden/cases/llama_bfloat16", "model.safetensors.index.json"},
    {"golden/cases/adapted_llama_adapter", "adapter_config.json"},
}};
constexpr std::string_view kAdapterBase = "golden/cases/adapted_llama";

// Links to the case's files in a directory of their own.
fs::path linked_copy(const fs::path& directory, std::string_view case_folder) {
  const auto copy = directory / fs::path(case_folder).filename();
  if (fs::create_directory(copy)) {
    for (const auto& file :
         fs::directory_iterator(fs::path(THESEUS_SOURCE_DIR "/tests") / case_folder)) {
      fs::create_symlink(file.path(), copy / file.path().filename());
    }
  }
  return copy;
}

void write_config(const fs::path& path, std::string_view text) {
  fs::remove(path);
  tests::write_bytes(path, text);
}

// A config that opens must also run, on inputs of the shapes it asks for.
void run(model::Model& model) {
  model::Batch batch;
  for (const auto& tower : model.architecture().towers) {
    if (tower.image > 64) {
      return;
    }
    if (tower.image > 0) {
      batch["pixel_values"] = at::zeros({1, 3, tower.image, tower.image});
    }
  }
  for (const auto& name : model.architecture().inputs) {
    if (name == "input_ids" || name == "text" || name == "decoder_input_ids") {
      batch[name] = at::zeros({1, 3}, at::kLong);
    }
  }
  try {
    model.forward(batch);
  } catch (const NumericError&) {
  }
}

void open(const Target& target, std::string_view text) {
  static const tests::ScratchDir directory;
  const auto copy = linked_copy(directory.path(), target.case_folder);
  write_config(copy / target.file, text);
  try {
    if (target.file == "adapter_config.json") {
      const auto adapter = update::read_adapter(copy);
      static auto base = model::Model::open(linked_copy(directory.path(), kAdapterBase));
      base.attach(adapter);
      run(base);
    } else {
      auto model = model::Model::open(copy);
      run(model);
    }
  } catch (const InputError&) {
  }
}

using Value = nlohmann::json;

void collect(Value& value, std::vector<Value*>& found) {
  found.push_back(&value);
  if (value.is_structured()) {
    for (auto& item : value) {
      collect(item, found);
    }
  }
}

const Value& odd_value(std::mt19937& random) {
  static const Value values = Value::parse(R"json([
      0, 1, 2, 3, 4, 5, 7, 8, 24, 60, 64, -1, 1000000000, 2147483648, 2147483649,
      9223372036854775807, -9223372036854775808, 18446744073709551615, 0.0, 0.5, -1.5, 1e-300, 1e300,
      null, true, false, "", [], {}, [6, 6], [6, 7], {"a": 1}, ["T5EncoderModel"], "LlamaModel",
      ["BertForSequenceClassification"], "gelu", "relu", "quick_gelu", "gated-gelu", "gated-", "default",
      "linear", "llama3", "yarn", "full_attention", "llama", "mistral", "qwen2", "qwen3", "bert", "vit",
      "t5", "clip", "vit_base_patch0_224", "vit_giant_patch14_224.x", "deit_tiny_patch16_384", "token",
      "(a*)*b", "^(", ".*", "../x", "model-00001-of-00003.safetensors"])json");
  return values[random() % values.size()];
}

// Changes one value, or removes, adds or renames one name, anywhere in the document.
void change(Value& document, std::mt19937& random) {
  static const std::array<std::string, 12> names = {
      "rope_scaling", "rope_parameters", "factor",      "head_dim",
      "id2label",     "mlp_ratio",       "custom_text", "quick_gelu",
      "rank_pattern", "alpha_pattern",   "num_labels",  "layer_types"};
  std::vector<Value*> places;
  collect(document, places);
  Value& place = *places[random() % places.size()];
  if (!place.is_object() || random() % 4 == 0) {
    const Value value = random() % 4 == 0 ? *places[random() % places.size()] : odd_value(random);
    place = value;
    return;
  }
  if (random() % 2 == 0 && !place.empty()) {
    place.erase(
        std::next(place.begin(), static_cast<std::ptrdiff_t>(random() % place.size())).key());
  } else {
    const Value value = odd_value(random);
    place[names[random() % names.size()]] = value;
  }
}

}  // namespace
}  // namespace theseus

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace theseus;
  const c10::NoGradGuard no_gradients;
  if (size > 0) {
    open(
        kTargets[static_cast<uint8_t>(data[0] - 'a') % kTargets.size()],
        {reinterpret_cast<const char*>(data) + 1, size - 1});
  }
  return 0;
}

// Most changes of a byte make something that is not JSON, and nothing behind the parser sees it.
extern "C" size_t LLVMFuzzerCustomMutator(
    uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace theseus;
  std::mt19937 random(seed);
  auto document = size < 2 ? Value() : Value::parse(data + 1, data + size, nullptr, false);
  if (!document.is_object() || random() % 8 == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  for (unsigned i = 0; i <= random() % 3; ++i) {
    change(document, random);
  }
  const auto text = document.dump(-1, ' ', false, Value::error_handler_t::replace);
  if (text.size() >= max_size) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  std::copy(text.begin(), text.end(), data + 1);
  return text.size() + 1;
}
