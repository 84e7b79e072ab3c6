#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/preprocess_files.h"

namespace theseus::data {
namespace {

constexpr int64_t kMostSize = 65536;

Triple triple(const Json& json, std::string_view key, const Triple& fallback) {
  if (!json.has(key)) {
    return fallback;
  }
  const auto& list = json.raw().at(std::string(key));
  const bool numbers =
      list.is_array() && list.size() == 3 &&
      std::all_of(list.begin(), list.end(), [](const auto& value) { return value.is_number(); });
  require(numbers, json.where(key), ": expected three numbers, found ", printable(json.dump(key)));
  return {list[0].get<double>(), list[1].get<double>(), list[2].get<double>()};
}

// Where no file says anything.
Preprocessing defaults(std::string_view family, const Size& model) {
  auto result = start_for(model);
  result.origin = "defaults of " + std::string(family);
  if (family == "clip" || family == "openclip") {
    result.mean = kClipMean;
    result.std = kClipStd;
  } else if (family == "timm_vit") {
    result.resize = enlarged(result.resize, 0.9, "crop_pct");  // what timm's ViTs were trained for
  } else if (family == "vit") {
    result.fit = Fit::kSquash;
    result.resample = Resample::kBilinear;
  }
  return result;
}

// `key` of a JSON file, when both are there; the whole file when it has none but one of `also`.
std::optional<Json> part_of(
    const std::filesystem::path& path, std::string_view key, const std::vector<std::string>& also) {
  if (!std::filesystem::is_regular_file(path)) {
    return std::nullopt;
  }
  const auto json = Json::parse_file(path);
  if (json.has(key)) {
    return json.object(key);
  }
  const bool here = std::any_of(
      also.begin(), also.end(), [&](const std::string& name) { return json.has(name); });
  return here ? std::optional(json) : std::nullopt;
}

}  // namespace

std::string text_of(const Size& size) {
  return c10::str(size.height, " x ", size.width);
}

void expect_size(const std::string& where, const Size& found, const Size& model) {
  require(
      found == model, where, ": images of ", text_of(found), ", but the model takes ",
      text_of(model), ". One of its files belongs to another model");
}

int64_t checked_size(const std::string& where, int64_t size) {
  require(size >= 1 && size <= kMostSize, where, ": expected 1 to ", kMostSize, ", found ", size);
  return size;
}

void read_statistics(
    const Json& json, std::string_view mean, std::string_view std, Preprocessing& result) {
  result.mean = triple(json, mean, result.mean);
  result.std = triple(json, std, result.std);
  for (const double value : result.std) {
    require(value > 0, json.where(std), ": expected numbers above 0, found ", value);
  }
}

Resample resample_named(const Json& json, std::string_view key) {
  const auto name = json.text(key, "bicubic");
  require(
      name == "bicubic" || name == "bilinear", json.where(key),
      ": expected bicubic or bilinear, found \"", printable(name), "\", which is not implemented");
  return name == "bicubic" ? Resample::kBicubic : Resample::kBilinear;
}

void squash_to(const Size& size, Preprocessing& result) {
  result.fit = Fit::kSquash;
  result.squash_height = size.height;
  result.squash_width = size.width;
}

Preprocessing start_for(const Size& model) {
  Preprocessing result;
  result.height = model.height;
  result.width = model.width;
  result.resize = std::min(model.height, model.width);
  squash_to(model, result);
  result.fit = Fit::kCrop;
  return result;
}

int64_t enlarged(int64_t size, double share, const std::string& where) {
  const double large = std::floor(static_cast<double>(size) / share);
  require(
      share > 0 && large >= 1 && large <= kMostSize, where,
      ": expected a share such as 0.9, found ", share);
  return static_cast<int64_t>(large);
}

Preprocessing find_preprocessing(
    const std::filesystem::path& directory,
    std::string_view family,
    int64_t height,
    int64_t width) {
  const Size model = {
      checked_size("the model's images", height), checked_size("the model's images", width)};
  if (family == "openclip") {
    if (const auto json = part_of(directory / "open_clip_config.json", "preprocess_cfg", {})) {
      return from_openclip(*json, model);
    }
  }
  if (family == "timm_vit") {
    // Old files have the fields of pretrained_cfg at the top.
    const std::vector<std::string> fields = {
        "input_size", "mean", "std", "interpolation", "crop_pct"};
    if (const auto json = part_of(directory / "config.json", "pretrained_cfg", fields)) {
      return from_timm(*json, model);
    }
  }
  const auto path = directory / "preprocessor_config.json";
  if (std::filesystem::is_regular_file(path)) {
    return from_transformers(Json::parse_file(path), model);
  }
  return defaults(family, model);
}

}  // namespace theseus::data
