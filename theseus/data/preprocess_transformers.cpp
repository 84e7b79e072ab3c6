// preprocessor_config.json of transformers.

#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/preprocess_files.h"

namespace theseus::data {
namespace {

// What a class of image processors does where the file is silent.
struct Processor {
  std::string_view name;
  bool squashes;  // one number as size means both sides
  bool crops;
  Resample resample;
  Triple mean;
  Triple std;
};

constexpr std::array kProcessors = {
    Processor{"CLIP", false, true, Resample::kBicubic, kClipMean, kClipStd},
    Processor{"Bit", false, true, Resample::kBicubic, kClipMean, kClipStd},
    Processor{"ViT", true, false, Resample::kBilinear, kHalf, kHalf},
    Processor{"DeiT", true, true, Resample::kBicubic, kHalf, kHalf},
    Processor{"Siglip", true, false, Resample::kBicubic, kHalf, kHalf},
};

// "CLIPImageProcessorFast" -> "CLIP"
std::string stem(std::string name) {
  for (const std::string end : {"Fast", "ImageProcessor", "FeatureExtractor"}) {
    if (name.size() > end.size() && name.substr(name.size() - end.size()) == end) {
      name.resize(name.size() - end.size());
    }
  }
  return name;
}

Processor processor_of(const Json& json) {
  const char* const key =
      json.has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
  if (!json.has(key)) {
    // The oldest files have no class, and only CLIP's crop.
    return json.boolean("do_center_crop", json.has("crop_size")) ? kProcessors[0] : kProcessors[2];
  }
  const auto name = stem(json.text(key));
  std::vector<std::string> known;
  for (const auto& processor : kProcessors) {
    if (processor.name == name) {
      return processor;
    }
    known.push_back(std::string(processor.name) + "ImageProcessor");
  }
  throw InputError(c10::str(
      json.where(key), ": \"", printable(json.text(key)), "\" is not implemented; known are ",
      joined(known, known.size())));
}

// A number (both sides) or an object with height and width.
Size size_of(const Json& json, std::string_view key) {
  if (json.raw().at(std::string(key)).is_object()) {
    const auto object = json.object(key);
    return {
        checked_size(object.where("height"), object.integer("height")),
        checked_size(object.where("width"), object.integer("width"))};
  }
  const auto side = checked_size(json.where(key), json.integer(key));
  return {side, side};
}

void read_size(
    const Json& json, const Processor& processor, const Size& model, Preprocessing& result) {
  if (!json.boolean("do_resize", true)) {
    result.resize = 0;
    return;
  }
  if (!json.has("size")) {
    if (processor.squashes) {
      squash_to(model, result);
    }
    return;
  }
  if (!json.raw().at("size").is_object()) {
    const auto size = size_of(json, "size");
    if (processor.squashes) {
      squash_to(size, result);
    } else {
      result.resize = size.height;
    }
    return;
  }
  const auto size = json.object("size");
  if (size.keys() == std::vector<std::string>{"shortest_edge"}) {
    result.resize = checked_size(size.where("shortest_edge"), size.integer("shortest_edge"));
    return;
  }
  require(
      size.keys() == std::vector<std::string>{"height", "width"}, json.where("size"),
      ": expected a number, shortest_edge, or height and width, found ",
      printable(json.dump("size")), ", which is not implemented");
  squash_to(size_of(json, "size"), result);
}

void check_result_size(
    const Json& json, const Processor& processor, const Size& model, const Preprocessing& result) {
  if (json.boolean("do_center_crop", processor.crops)) {
    if (json.has("crop_size")) {
      expect_size(json.where("crop_size"), size_of(json, "crop_size"), model);
    }
    return;
  }
  require(
      result.fit == Fit::kSquash, json.where(),
      ": without do_center_crop and without one size for all images they would have many sizes; "
      "the "
      "model takes ",
      text_of(model));
  expect_size(json.where("size"), {result.squash_height, result.squash_width}, model);
}

void refuse_other_steps(const Json& json) {
  for (const char* key :
       {"do_pad", "do_thumbnail", "do_align_long_axis", "do_flip_channel_order",
        "do_image_splitting"}) {
    require(!json.boolean(key, false), json.where(key), ": is not implemented");
  }
  for (const char* key : {"crop_pct", "offset", "rescale_offset"}) {
    require(!json.has(key), json.where(key), ": is not implemented");
  }
}

}  // namespace

Preprocessing from_transformers(const Json& json, const Size& model) {
  refuse_other_steps(json);
  const auto processor = processor_of(json);
  auto result = start_for(model);
  read_size(json, processor, model, result);
  check_result_size(json, processor, model, result);
  result.resample = processor.resample;
  if (json.has("resample")) {
    const auto code = json.integer("resample");
    require(
        code == 2 || code == 3, json.where("resample"),
        ": expected 2 (bilinear) or 3 (bicubic), found ", code, ", which is not implemented");
    result.resample = code == 2 ? Resample::kBilinear : Resample::kBicubic;
  }
  result.scale = json.boolean("do_rescale", true) ? json.number("rescale_factor", 1.0 / 255) : 1.0;
  result.mean = processor.mean;
  result.std = processor.std;
  read_statistics(json, "image_mean", "image_std", result);
  if (!json.boolean("do_normalize", true)) {
    result.mean = {0, 0, 0};
    result.std = {1, 1, 1};
  }
  result.origin = json.where();
  return result;
}

}  // namespace theseus::data
