#include "theseus/output/sentence_head.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/base/made_files.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/checkpoint/write.h"
#include "theseus/model/class_names.h"
#include "theseus/model/layers.h"
#include "theseus/output/text_file.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kModules = "modules.json";
constexpr const char* kPooling = "1_Pooling";
constexpr const char* kDense = "2_Dense";
constexpr const char* kConfig = "config.json";
constexpr const char* kName = "classifier";
constexpr const char* kPackage = "sentence_transformers.models.";
constexpr const char* kIdentity = "torch.nn.modules.linear.Identity";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

ordered_json module_line(int place, const std::string& name, const char* path, const char* type) {
  return {{"idx", place}, {"name", name}, {"path", path}, {"type", std::string(kPackage) + type}};
}

std::string text_of(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The directory of the module that is called "classifier", by its name in `directory`; empty: none.
std::string find_dense(const fs::path& directory) {
  const bool ours = has_sentence_head(directory);
  for (const auto& module : sentence_modules(directory)) {
    const bool known = module.type.ends_with(".Transformer") || module.name == kName ||
                       (module.type.ends_with(".Pooling") && module.path == kPooling);
    require(
        !ours || known, (directory / kModules).string(), ": beside a head there is ",
        printable(module.type), " in '", printable(module.path),
        "'; expected a Transformer, Pooling in ", kPooling, " and the head");
    if (module.name == kName) {
      require(
          module.type.ends_with(".Dense") && !module.path.empty(), (directory / kModules).string(),
          ": the module ", kName,
          " is expected to be a Dense one in a directory beside it, and is ",
          printable(module.type));
      return module.path;
    }
  }
  return {};
}

// Names that stand beside the head itself; an adapter has no config of a model.
std::vector<std::string> names_of_classes(const fs::path& directory, int64_t count) {
  for (const auto& module : sentence_modules(directory)) {
    if (module.name == kName && static_cast<int64_t>(module.labels.size()) == count) {
      return module.labels;
    }
  }
  return model::class_names(directory / kConfig, count);
}

std::vector<std::string> texts_of(const ordered_json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  for (const auto& one :
       found != object.end() && found->is_array() ? *found : ordered_json::array()) {
    texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return texts;
}

}  // namespace

std::vector<SentenceModule> sentence_modules(const fs::path& directory) {
  constexpr int64_t kLongest = 1 << 20;
  std::vector<SentenceModule> modules;
  if (directory.empty() || !is_file(directory / kModules)) {
    return modules;
  }
  const auto text = read_text_file(directory / kModules, kLongest);
  const auto list = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const auto& one : list.is_array() ? list : ordered_json::array()) {
    if (!one.is_object()) {
      continue;
    }
    const auto path = text_of(one, "path");
    const bool beside = !path.starts_with('.') && fs::path(path).filename() == path;
    modules.push_back(
        {.name = text_of(one, "name"),
         .type = text_of(one, "type"),
         .path = beside ? path : std::string(),
         .labels = texts_of(one, "labels")});
  }
  return modules;
}

bool has_sentence_head(const fs::path& directory) {
  const auto modules = sentence_modules(directory);
  return std::any_of(
      modules.begin(), modules.end(), [](const auto& module) { return module.name == kName; });
}

void write_sentence_head(const SentenceHead& head, const fs::path& directory) {
  with_context("writing the head beside the encoder", [&] {
    const auto classes = head.weight.size(0), width = head.weight.size(1);
    for (const char* name : {kPooling, kDense}) {
      std::error_code error;
      note_made(directory / name);
      fs::create_directory(directory / name, error);
      require(!error, "cannot make ", (directory / name).string(), ": ", error.message());
    }
    write_json(
        directory / kPooling / kConfig, {{"word_embedding_dimension", width},
                                         {"pooling_mode_cls_token", false},
                                         {"pooling_mode_mean_tokens", true},
                                         {"pooling_mode_max_tokens", false},
                                         {"pooling_mode_mean_sqrt_len_tokens", false}});
    write_json(
        directory / kDense / kConfig, {{"in_features", width},
                                       {"out_features", classes},
                                       {"bias", true},
                                       {"activation_function", kIdentity}});
    const auto stored = [](const at::Tensor& tensor) {
      return tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    };
    checkpoint::write_safetensors(
        directory / kDense / "model.safetensors",
        {{"linear.bias", stored(head.bias)}, {"linear.weight", stored(head.weight)}});
    auto dense = module_line(2, kName, kDense, "Dense");
    if (!head.classes.empty()) {
      dense["labels"] = head.classes;
    }
    write_json(
        directory / kModules, ordered_json::array(
                                  {module_line(0, "0", "", "Transformer"),
                                   module_line(1, "1", kPooling, "Pooling"), dense}));
  });
}

std::optional<SentenceHead> find_sentence_head(const fs::path& directory) {
  const auto dense = find_dense(directory);
  if (dense.empty()) {
    return std::nullopt;
  }
  return with_context("reading the head in " + (directory / dense).string(), [&] {
    const auto about = Json::parse_file(directory / dense / kConfig);
    require(
        about.text("activation_function", "") == kIdentity, about.where("activation_function"),
        ": a head has none, as ", kIdentity, " says");
    const auto pooling = other_pooling(directory);
    require(pooling.empty(), "it reads ", pooling, "; expected the mean of the tokens");
    const auto file = checkpoint::Checkpoint::open(directory / dense);
    SentenceHead head{.weight = file.tensor("linear.weight").to(at::kFloat)};
    require(
        head.weight.dim() == 2 && head.weight.numel() > 0, "linear.weight has shape ",
        head.weight.sizes());
    head.bias = file.find("linear.bias") == nullptr ? at::zeros({head.weight.size(0)})
                                                    : file.tensor("linear.bias").to(at::kFloat);
    require(
        head.bias.sizes() == at::IntArrayRef({head.weight.size(0)}), "linear.bias has shape ",
        head.bias.sizes(), " and linear.weight ", head.weight.sizes());
    require(
        model::all_finite(head.weight) && model::all_finite(head.bias), "it holds NaN or infinity");
    head.classes = names_of_classes(directory, head.weight.size(0));
    return std::make_optional(head);
  });
}

bool take_sentence_head(const fs::path& directory, model::Model& model) {
  const auto& architecture = model.architecture();
  if (architecture.head_task != model::kBareEncoder) {
    return false;
  }
  const auto head = find_sentence_head(directory);
  if (!head) {
    return false;
  }
  require(
      head->weight.size(1) == architecture.head_width, "the head in ", directory.string(),
      " reads ", head->weight.size(1), " numbers and the encoder gives ", architecture.head_width);
  model.weights().replace(architecture.head + ".weight", head->weight);
  model.weights().replace(architecture.head + ".bias", head->bias);
  return true;
}

std::string other_pooling(const fs::path& directory) {
  const auto path = directory / kPooling / kConfig;
  if (directory.empty() || !is_file(path)) {
    return {};
  }
  const auto config = Json::parse_file(path);
  std::vector<std::string> modes;
  for (const auto& key : config.keys()) {
    const auto& value = config.raw().at(key);
    if (key.starts_with("pooling_mode") && value != false && !value.is_null()) {
      modes.push_back(value == true ? key : value.dump());
    }
  }
  const bool mean = modes == std::vector<std::string>{"pooling_mode_mean_tokens"} ||
                    modes == std::vector<std::string>{"\"mean\""};
  return mean || modes.empty() ? "" : joined(modes, 5);
}

}  // namespace theseus::output
