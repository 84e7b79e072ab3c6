// With x_t = E x in every space, k copies of each unit and E^T E = k I, a weight that reads x and
// writes y becomes
//
//   W_t = E_y W E_x^T / k,
//
// biases, embeddings and tables E along each axis that they share with a space. Gains are diagonals:
// diag(g_t) = E diag(g) E^T on copies, so g_t = (E * E) g, which is 1 where g is 1 and E a rotation.
// LayerNorm and RMS norm keep copies copies, and an RMS norm with gains 1 commutes with rotations.
//
// A head tied to the embedding E_x reads k times too much: the norm before it makes up for that, and
// for T5's division by the root of its width.

#include "tests/support/planted.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"

#include "tests/support/cases.h"
#include "tests/support/openclip_case.h"
#include "tests/support/planted_maps.h"
#include "tests/support/scratch_dir.h"

namespace theseus::tests {
namespace {

namespace fs = std::filesystem;

// The first case of each family is the one for its name.
constexpr std::pair<const char*, const char*> kCases[] = {
    {"bert", "adapted_bert"}, {"clip", "clip_legacy_end"},   {"llama", "adapted_llama"},
    {"t5", "t5_own_head"},    {"timm_vit", "timm_headless"}, {"vit", "adapted_vit"}};

// Keys of all families' configs that say how wide something is. Head widths are not among them.
const std::set<std::string> kWidths = {
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "d_model",
    "d_ff",
    "num_heads",
    "embed_dim",
    "width",
    "heads",
    "projection_dim",
    "pooler_output_size"};

nlohmann::json resized(nlohmann::json config, int64_t copies, at::ScalarType dtype) {
  for (auto& [key, value] : config.items()) {
    if (value.is_object()) {
      value = resized(value, copies, dtype);
    } else if (kWidths.contains(key) && value.is_number_integer()) {
      value = value.get<int64_t>() * copies;
    } else if (key == "dtype" || key == "torch_dtype") {
      value = dtype == at::kBFloat16 ? "bfloat16" : "float32";
    }
  }
  return config;
}

Tensors rounded(const Tensors& tensors, at::ScalarType dtype) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) {
    result[name] = tensor.to(dtype).to(at::kDouble);
  }
  return result;
}

Tensors tensors_of(const model::Model& model) {
  Tensors tensors;
  for (const auto& parameter : model.architecture().parameters) {
    auto value = model.checkpoint().tensor(parameter.stored);
    if (parameter.fused()) {
      value = value.narrow(0, parameter.row, parameter.shape[0]);
    }
    tensors[parameter.name] = value.to(at::kDouble, false, true);
  }
  return tensors;
}

// Outputs of a LayerNorm are gain * n + shift with sum(n) = 0: one direction is seen by its shift only.
void strengthen_shifts(const model::Architecture& architecture, Tensors& base) {
  for (const auto& parameter : architecture.parameters) {
    if (parameter.role == model::Role::kShift) {
      base.at(parameter.name) += 0.2;
    }
  }
}

// The source of a rotation: any gains can be folded into the weights behind them, so 1 is as good.
void level_gains(const model::Architecture& architecture, Tensors& base) {
  for (const auto& parameter : architecture.parameters) {
    require(
        parameter.role != model::Role::kShift, parameter.name,
        ": rotations are for models with RMS norms");
    if (parameter.role == model::Role::kGain && !model::is_fixed(parameter.axes[0])) {
      base.at(parameter.name).fill_(1);
    }
  }
}

// What the norm before a head has to be multiplied by: see above.
std::map<std::string, double> head_factors(const model::Model& source, int64_t copies) {
  std::map<std::string, double> factors;  // by space
  std::set<std::string> tables;
  for (const auto& parameter : source.architecture().parameters) {
    if (parameter.role == model::Role::kTable) {
      tables.insert(parameter.tensor);
    }
  }
  for (const auto& linear : source.architecture().linears) {
    if (tables.contains(linear.weight)) {
      factors[linear.in] = 1 / static_cast<double>(copies);
    }
  }
  if (source.location().family == "t5") {
    const auto config = Json::parse_file(source.location().config);
    const bool tied = config.boolean("tie_word_embeddings", true);
    if (config.boolean("scale_decoder_outputs", tied)) {
      auto& factor = factors.try_emplace("decoder.final", 1).first->second;
      factor *= std::sqrt(static_cast<double>(copies));
    }
  }
  return factors;
}

Tensors constructed(const model::Model& source, const PlantingMaps& maps, const Tensors& from) {
  const auto& architecture = source.architecture();
  const auto factors = head_factors(source, maps.copies);
  Tensors to;
  for (const auto& parameter : architecture.parameters) {
    auto value = from.at(parameter.name);
    for (size_t i = 0; i < parameter.axes.size(); ++i) {
      if (const auto key = map_key(parameter, i); !key.empty()) {
        const auto axis = static_cast<int64_t>(i);
        const auto& expand = maps.expand.at(key);
        const bool diagonal = parameter.role == model::Role::kGain;
        value = at::tensordot(diagonal ? expand.square() : expand, value, {1}, {axis});
        value = value.movedim(0, axis);
      }
    }
    if (reading_axis(architecture, parameter)) {
      value = value / maps.copies;
    }
    const bool norm = parameter.role == model::Role::kGain || parameter.role == model::Role::kShift;
    if (norm && factors.contains(parameter.axes[0])) {
      value = value * factors.at(parameter.axes[0]);
    }
    to[parameter.name] = value;
  }
  return to;
}

// Parts of a fused tensor stand in the order of their rows.
void write_model(
    const fs::path& directory,
    const model::Model& source,
    const Tensors& tensors,
    int64_t copies,
    at::ScalarType dtype) {
  std::map<std::string, std::vector<at::Tensor>> parts;  // by stored name
  for (const auto& parameter : source.architecture().parameters) {
    parts[parameter.stored].push_back(tensors.at(parameter.name).to(dtype));
  }
  std::vector<std::pair<std::string, at::Tensor>> stored;
  for (const auto& [name, pieces] : parts) {
    stored.emplace_back(name, pieces.size() == 1 ? pieces[0].contiguous() : at::cat(pieces, 0));
  }
  const auto& config = source.location().config;
  fs::create_directories(directory);
  checkpoint::write_safetensors(
      directory / (source.location().family == "openclip" ? "open_clip_model.safetensors"
                                                          : "model.safetensors"),
      stored);
  write_bytes(
      directory / config.filename(),
      resized(Json::parse_file(config).raw(), copies, dtype).dump(2));
}

Planted plant_model(
    const model::Model& base, Planting planting, const fs::path& scratch, PlantOptions options) {
  auto source = tensors_of(base);
  strengthen_shifts(base.architecture(), source);
  if (planting == Planting::kRotated) {
    level_gains(base.architecture(), source);
  }
  source = rounded(source, options.dtype);
  const auto tuned =
      rounded(changed(base.architecture(), source, planting, options), options.dtype);
  const auto maps = planting_maps(base, planting, options.seed);
  const auto write = [&](const char* name, const Tensors& tensors, int64_t copies) {
    write_model(scratch / name, base, tensors, copies, options.dtype);
    return scratch / name;
  };
  Planted planted{
      .source = write("source", source, 1),
      .tuned = write("tuned", tuned, 1),
      .target = write("target", constructed(base, maps, source), maps.copies),
      .expected = write("expected", constructed(base, maps, tuned), maps.copies),
      .inputs = planted_calibration(base, 6, options.seed),
      .maps = {}};
  for (const auto& [space, expand] : maps.expand) {
    if (!model::is_fixed(space.substr(space.find('.') + 1))) {
      planted.maps[space] = expand.t() / std::sqrt(static_cast<double>(maps.copies));
    }
  }
  return planted;
}

// The end of the name of the space that an output lives in; empty: labels or vocabulary.
std::string space_of_output(const std::string& output) {
  if (output.starts_with("logits")) {
    return "";
  }
  if (output.starts_with("image_") || output.starts_with("text_")) {
    return "embed";
  }
  return output == "pooler_output" ? "pooled" : "stream";
}

}  // namespace

at::Tensor Planted::as_target(const std::string& output, const at::Tensor& value) const {
  const auto ending = space_of_output(output);
  if (ending.empty()) {
    return value;
  }
  for (const auto& [space, map] : maps) {
    if (space.ends_with(ending) || (ending == "pooled" && space.ends_with("pooled_up"))) {
      const auto copies = static_cast<double>(map.size(1)) / static_cast<double>(map.size(0));
      // Features that were normalised keep their length, others repeat their entries.
      const double factor = output.ends_with("_embeds") ? 1 : std::sqrt(copies);
      return value.to(at::kDouble).matmul(map) * factor;
    }
  }
  throw InternalError("no space for output " + output);
}

std::vector<std::string> planted_cases() {
  std::vector<std::string> names = {"openclip"};
  for (const auto& entry : fs::directory_iterator(case_path(""))) {
    if (fs::exists(entry.path() / "config.json")) {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string planted_case(const std::string& family) {
  const auto* found = std::find_if(
      std::begin(kCases), std::end(kCases), [&](const auto& row) { return row.first == family; });
  return found == std::end(kCases) ? family : found->second;
}

Planted plant(
    const std::string& family_or_case,
    Planting planting,
    const fs::path& scratch,
    const PlantOptions& options) {
  const auto name = planted_case(family_or_case);
  if (name == "openclip") {
    const OpenClipCase openclip;
    return plant_model(model::Model::open(openclip.path()), planting, scratch, options);
  }
  return plant_model(open_case(name), planting, scratch, options);
}

}  // namespace theseus::tests
