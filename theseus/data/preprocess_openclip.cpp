// preprocess_cfg in open_clip_config.json.

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/preprocess_files.h"

namespace theseus::data {

Preprocessing from_openclip(const Json& json, const Size& model) {
  auto result = start_for(model);
  const auto sides = json.integers("size");
  require(sides.size() <= 2, json.where("size"), ": expected one or two numbers");
  if (!sides.empty()) {
    expect_size(json.where("size"), {sides.front(), sides.back()}, model);
  }
  const auto mode = json.text("resize_mode", "shortest");
  require(
      mode == "shortest" || mode == "squash", json.where("resize_mode"),
      ": expected shortest or squash, found \"", printable(mode), "\", which is not implemented");
  require(
      mode == "squash" || model.height == model.width, json.where("resize_mode"), ": shortest to ",
      text_of(model), " is not implemented; only to a square");
  require(
      json.text("mode", "RGB") == "RGB", json.where("mode"), ": expected RGB, found \"",
      printable(json.text("mode", "RGB")), "\", which is not implemented");
  result.fit = mode == "squash" ? Fit::kSquash : Fit::kCrop;
  result.resample = resample_named(json, "interpolation");
  result.mean = kClipMean;
  result.std = kClipStd;
  read_statistics(json, "mean", "std", result);
  result.origin = json.where();
  return result;
}

}  // namespace theseus::data
