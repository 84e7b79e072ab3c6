// PEFT computes (lora_alpha / r) B A for each module. With one r and one lora_alpha for all:
//   equal scales s:  lora_alpha = s r, A and B padded with zero rows and columns to r;
//   else:            lora_alpha = r, and B becomes s B.

#include "theseus/output/write_adapter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/write.h"
#include "theseus/model/layers.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

using Modules = std::map<std::string, update::LowRank>;

void check_module(const std::string& module, const update::LowRank& delta) {
  require<InternalError>(
      delta.up.defined() && delta.down.defined() && delta.up.dim() == 2 && delta.down.dim() == 2 &&
          delta.up.size(1) == delta.down.size(0) && delta.up.size(1) > 0,
      "the factors of ", module, " do not share a rank");
  require<InternalError>(
      at::isFloatingType(delta.up.scalar_type()) && at::isFloatingType(delta.down.scalar_type()),
      "the factors of ", module, " are not floating point");
  const bool finite =
      std::isfinite(delta.scale) && model::all_finite(delta.up) && model::all_finite(delta.down);
  require<NumericError>(finite, "the factors or the scale of ", module, " are not finite");
}

// Zeros behind the end of one axis.
at::Tensor padded(const at::Tensor& factor, int64_t axis, int64_t rank) {
  if (factor.size(axis) == rank) {
    return factor;
  }
  auto shape = factor.sizes().vec();
  shape[static_cast<size_t>(axis)] = rank;
  auto result = at::zeros(shape, factor.options());
  result.narrow(axis, 0, factor.size(axis)).copy_(factor);
  return result;
}

at::Tensor scaled(const at::Tensor& up, double scale, const std::string& module) {
  const auto exact = up.to(at::kDouble) * scale;
  auto result = exact.to(up.scalar_type());
  const bool half = up.scalar_type() == at::kHalf || up.scalar_type() == at::kBFloat16;
  if (half && !at::equal(result.to(at::kDouble), exact)) {
    result = exact.to(at::kFloat);
  }
  require<NumericError>(
      model::all_finite(result), module, ": lora_B times the scale ", scale, " is beyond ",
      result.scalar_type());
  return result;
}

// What all modules will share.
struct Shared {
  int64_t rank = 0;
  bool equal_scales = true;
  double alpha = 0;
};

Shared shared_by(const Modules& modules) {
  Shared shared;
  const double scale = modules.begin()->second.scale;
  for (const auto& [module, delta] : modules) {
    check_module(module, delta);
    shared.rank = std::max(shared.rank, delta.up.size(1));
    shared.equal_scales = shared.equal_scales && delta.scale == scale;
  }
  shared.alpha = static_cast<double>(shared.rank) * (shared.equal_scales ? scale : 1);
  return shared;
}

// PEFT adapts a module when its path is in the list or ends in "." and an element of it.
std::vector<std::string> excluded(
    const Modules& adapted, const std::vector<std::string>& all_modules) {
  std::set<std::string> found;
  for (const auto& module : all_modules) {
    if (adapted.contains(module)) {
      continue;
    }
    for (size_t dot = module.find('.'); dot != std::string::npos; dot = module.find('.', dot + 1)) {
      if (adapted.contains(module.substr(dot + 1))) {
        found.insert(module);
      }
    }
  }
  return {found.begin(), found.end()};
}

nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

// Integers as such: PEFT declares lora_alpha as one.
nlohmann::json json_number(double value) {
  constexpr double kLargest = 1e15;
  return value == std::floor(value) && std::abs(value) < kLargest
             ? nlohmann::json(static_cast<int64_t>(value))
             : nlohmann::json(value);
}

// Only fields that PEFT has had for long: older versions refuse those they do not know.
std::string config_text(
    const Modules& modules, const Shared& shared, const AdapterOptions& options) {
  std::vector<std::string> names;
  for (const auto& [module, delta] : modules) {
    names.push_back(module);
  }
  nlohmann::json config = {
      {"alpha_pattern", nlohmann::json::object()},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path", text_or_null(options.base_model)},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layers_pattern", nullptr},
      {"layers_to_transform", nullptr},
      {"lora_alpha", json_number(shared.alpha)},
      {"lora_dropout", 0.0},
      {"modules_to_save", nullptr},
      {"peft_type", "LORA"},
      {"r", shared.rank},
      {"rank_pattern", nlohmann::json::object()},
      {"revision", nullptr},
      {"target_modules", names},
      {"task_type", text_or_null(options.task)},
      {"use_rslora", false}};
  std::set<std::string> saved;  // "classifier" for "classifier.weight"
  for (const auto& [name, tensor] : options.saved) {
    saved.insert(name.substr(0, name.rfind('.')));
  }
  if (!saved.empty()) {
    config["modules_to_save"] = saved;
  }
  if (const auto others = excluded(modules, options.modules); !others.empty()) {
    config["exclude_modules"] = others;
  }
  return config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::vector<std::pair<std::string, at::Tensor>> tensors_of(
    const Modules& modules, const Shared& shared, const AdapterOptions& options) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, tensor] : options.saved) {
    require<NumericError>(model::all_finite(tensor), name, " is not finite");
    tensors.emplace_back("base_model.model." + name, tensor);
  }
  for (const auto& [module, delta] : modules) {
    const auto name = "base_model.model." + module;
    const auto up = shared.equal_scales ? delta.up : scaled(delta.up, delta.scale, module);
    tensors.emplace_back(name + ".lora_A.weight", padded(delta.down, 0, shared.rank));
    tensors.emplace_back(name + ".lora_B.weight", padded(up, 1, shared.rank));
  }
  return tensors;
}

}  // namespace

void write_adapter(
    const fs::path& directory, const Modules& modules, const AdapterOptions& options) {
  with_context("writing an adapter to " + directory.string(), [&] {
    require<InternalError>(!modules.empty(), "an adapter without modules");
    const auto shared = shared_by(modules);
    const auto config = config_text(modules, shared, options);
    AtomicFile file(directory / "adapter_config.json", static_cast<int64_t>(config.size()));
    file.append(config);
    checkpoint::write_safetensors(
        directory / "adapter_model.safetensors", tensors_of(modules, shared, options));
    file.commit();
  });
}

}  // namespace theseus::output
