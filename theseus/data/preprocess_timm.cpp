// pretrained_cfg in timm's config.json.

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/preprocess_files.h"

namespace theseus::data {
namespace {

constexpr Triple kImageNetMean = {0.485, 0.456, 0.406};
constexpr Triple kImageNetStd = {0.229, 0.224, 0.225};

}  // namespace

Preprocessing from_timm(const Json& json, const Size& model) {
  auto result = start_for(model);
  const auto input = json.integers("input_size");
  if (!input.empty()) {
    require(
        input.size() == 3 && input[0] == 3, json.where("input_size"),
        ": expected [3, height, width], found ", printable(json.dump("input_size")));
    expect_size(json.where("input_size"), {input[1], input[2]}, model);
  }
  const double share = json.number("crop_pct", 0.875);
  const auto where = json.where("crop_pct");
  const Size before = {enlarged(model.height, share, where), enlarged(model.width, share, where)};
  const auto mode = json.text("crop_mode", "center");
  require(
      mode == "center" || mode == "squash", json.where("crop_mode"),
      ": expected center or squash, found \"", printable(mode), "\", which is not implemented");
  if (mode == "squash") {
    squash_to(before, result);
  } else {
    require(
        before.height == before.width, json.where("crop_mode"), ": the centre for ", text_of(model),
        " is not implemented; only for a square");
    result.resize = before.height;
  }
  result.resample = resample_named(json, "interpolation");
  result.mean = kImageNetMean;
  result.std = kImageNetStd;
  read_statistics(json, "mean", "std", result);
  result.origin = json.where();
  return result;
}

}  // namespace theseus::data
