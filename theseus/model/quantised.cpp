#include "theseus/model/quantised.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/json.h"

namespace theseus::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigKeys[] = {"quantization_config", "compression_config"};

// What the tensors of a quantised layer are called, and by whom.
constexpr std::pair<std::string_view, const char*> kEndings[] = {
    {".absmax", "bitsandbytes"},
    {".quant_map", "bitsandbytes"},
    {".SCB", "bitsandbytes"},
    {".g_idx", "GPTQ"},
    {".qzeros", "AWQ or GPTQ"},
    {".qweight", "AWQ or GPTQ"},
    {".weight_packed", "compressed-tensors"},
    {".weight_scale_inv", "FP8"},
    {".weight_scale", "FP8"}};

std::string method_of(const Json& config) {
  const auto method = config.text("quant_method", "");
  const bool bits = config.has("load_in_4bit") || config.has("load_in_8bit");
  return !method.empty() ? method : bits ? "bitsandbytes" : "an unnamed method";
}

// Of the config, or of a part of it, such as text_config; empty: it says nothing of the kind.
std::string told_by(const Json& config) {
  for (const char* key : kConfigKeys) {
    if (config.has(key)) {
      return c10::str(
          method_of(config.object(key)), " (", config.where(key),
          "; should the weights be of full precision all the same, take that key out)");
    }
  }
  for (const auto& key : config.keys()) {
    if (config.raw().at(key).is_object()) {
      if (const auto inner = told_by(config.object(key)); !inner.empty()) {
        return inner;
      }
    }
  }
  return {};
}

std::string told_by(const checkpoint::TensorInfo& tensor) {
  for (const auto& [ending, method] : kEndings) {
    if (tensor.name.ends_with(ending)) {
      return c10::str(method, " (it has ", tensor.name, ")");
    }
  }
  const bool eight = tensor.dtype.starts_with("F8_"), six = tensor.dtype.starts_with("F6_");
  const bool packed =
      (tensor.dtype == "U8" || tensor.dtype == "I8") && tensor.name.ends_with(".weight");
  return eight ? c10::str("FP8 (", tensor.name, " is ", tensor.dtype, ")")
         : six || tensor.dtype == "F4" || packed
             ? c10::str("an unnamed method (", tensor.name, " is ", tensor.dtype, ")")
         : tensor.name.find(".quant_state.") != std::string::npos
             ? c10::str("bitsandbytes (it has ", tensor.name, ")")
             : "";
}

}  // namespace

void refuse_quantised(const fs::path& config, const checkpoint::Checkpoint& checkpoint) {
  std::error_code ignored;
  std::string told;
  if (fs::is_regular_file(config, ignored)) {
    told = told_by(Json::parse_file(config));
  }
  for (const auto& tensor : checkpoint.tensors()) {
    told = told.empty() ? told_by(tensor) : told;
  }
  require(
      told.empty(), "the weights are quantised by ", told,
      ": such numbers are rounded and packed, and no update can be read from them or added to "
      "them; "
      "give the full-precision model (float32, bfloat16 or float16) that they were made from");
}

}  // namespace theseus::model
