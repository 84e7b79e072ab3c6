#include "theseus/data/preprocess.h"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/images.h"
#include "tests/support/scratch_dir.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;
using Triple = std::array<double, 3>;

constexpr Triple kClipMean = {0.48145466, 0.4578275, 0.40821073};

Preprocessing plain(int64_t height, int64_t width) {
  Preprocessing how;
  how.height = height;
  how.width = width;
  how.mean = {0, 0, 0};
  how.std = {1, 1, 1};
  return how;
}

// 12 crops and 4 squashes with each filter against Pillow with torchvision's sizes and offsets: the 8 bits
// were equal (largest and mean difference 0), and so v / 255 to float32's rounding.
TEST(Preprocess, IsTorchvisionsWithPillow) {
  auto names = tests::golden_names("crop/");
  const auto squashes = tests::golden_names("squash/");
  names.insert(names.end(), squashes.begin(), squashes.end());
  ASSERT_EQ(names.size(), 32);
  for (const auto& name : names) {
    SCOPED_TRACE(name);
    const auto words = tests::words(name);
    const auto expected = tests::golden_image(name).pixels.permute({2, 0, 1}).to(at::kFloat) / 255;
    auto how = plain(expected.size(1), expected.size(2));
    how.fit = words[0] == "crop" ? Fit::kCrop : Fit::kSquash;
    how.resize = how.squash_height = how.squash_width = std::stoll(words[2]);
    how.resample = words[4] == "bicubic" ? Resample::kBicubic : Resample::kBilinear;
    const auto found = preprocess(tests::golden_image("source/" + words[1]), how);
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_LE((found - expected).abs().max().item<double>(), 1.2e-7);
  }
}

TEST(Preprocess, NormalisesEachChannel) {
  auto pixels = at::zeros({2, 2, 3}, at::kByte);
  pixels.select(2, 0).fill_(255);
  pixels.select(2, 2).fill_(51);
  auto how = plain(2, 2);
  how.resize = 2;
  how.mean = {0.5, 0.25, 0.1};
  how.std = {0.5, 0.125, 0.2};
  const auto found = preprocess({pixels}, how);
  EXPECT_NEAR(found[0].min().item<double>(), 1.0, 1e-6);
  EXPECT_NEAR(found[1].max().item<double>(), -2.0, 1e-6);
  EXPECT_NEAR(found[2].max().item<double>(), 0.5, 1e-6);
  how.scale = 1;
  EXPECT_NEAR(preprocess({pixels}, how)[0].max().item<double>(), 509.0, 1e-4);
}

TEST(Preprocess, WithoutResizeTheCentreAndBlackAround) {
  auto how = plain(3, 5);
  how.resize = 0;
  how.mean = {0.5, 0.5, 0.5};
  how.std = {0.5, 0.5, 0.5};
  const auto found = preprocess({at::full({6, 2, 3}, 255, at::kByte)}, how);
  EXPECT_EQ(found.sizes(), (std::vector<int64_t>{3, 3, 5}));
  EXPECT_TRUE(found.slice(2, 1, 3).eq(1).all().item<bool>());
  EXPECT_TRUE(found.slice(2, 0, 1).eq(-1).all().item<bool>());
  EXPECT_TRUE(found.slice(2, 3, 5).eq(-1).all().item<bool>());
}

TEST(Preprocess, LargestImageOfOneRow) {
  const auto found = preprocess({at::full({1, 1'000'000, 3}, 255, at::kByte)}, plain(224, 224));
  EXPECT_TRUE(found.eq(1).all().item<bool>());
}

// What a file's text gives.
struct Files {
  tests::ScratchDir directory;

  Preprocessing find(const char* family, int64_t size) const {
    return find_preprocessing(directory.path(), family, size, size);
  }
};

Preprocessing transformers(const std::string& text, int64_t size = 224) {
  const Files files;
  files.directory.file("preprocessor_config.json", text);
  return files.find("clip", size);
}

Preprocessing openclip(const std::string& text, int64_t size = 224) {
  const Files files;
  files.directory.file(
      "open_clip_config.json", R"({"model_cfg": {}, "preprocess_cfg": )" + text + "}");
  return files.find("openclip", size);
}

Preprocessing timm(const std::string& text, int64_t size = 224) {
  const Files files;
  files.directory.file("config.json", R"({"architecture": "vit", "pretrained_cfg": )" + text + "}");
  return files.find("timm_vit", size);
}

TEST(FindPreprocessing, TransformersClip) {
  // As openai/clip-vit-base-patch32 has it, and as newer versions of the library write it.
  for (const char* sizes :
       {R"("size": 224, "crop_size": 224, "feature_extractor_type": "CLIPFeatureExtractor")",
        R"("size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224},
           "image_processor_type": "CLIPImageProcessorFast", "do_convert_rgb": true)",
        R"("size": 224, "do_center_crop": true)",
        R"("image_processor_type": "CLIPImageProcessor")"}) {
    SCOPED_TRACE(sizes);
    const auto how = transformers(std::string("{") + sizes + R"(, "resample": 3,
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "rescale_factor": 0.00392156862745098,
        "image_std": [0.26862954, 0.26130258, 0.27577711]})");
    EXPECT_EQ(how.fit, Fit::kCrop);
    EXPECT_EQ(how.resize, 224);
    EXPECT_EQ(how.height, 224);
    EXPECT_EQ(how.resample, Resample::kBicubic);
    EXPECT_EQ(how.mean, kClipMean);
    EXPECT_DOUBLE_EQ(how.std[2], 0.27577711);
    EXPECT_NEAR(how.scale, 1 / 255.0, 1e-15);
    expect_parts(how.origin, "preprocessor_config.json");
  }
}

TEST(FindPreprocessing, TransformersVit) {
  for (const char* text :
       {R"({"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5], "size": 224})",
        R"({"image_processor_type": "ViTImageProcessor", "size": {"height": 224, "width": 224},
            "resample": 2})",
        R"({"feature_extractor_type": "ViTFeatureExtractor"})"}) {
    SCOPED_TRACE(text);
    const auto how = transformers(text);
    EXPECT_EQ(how.fit, Fit::kSquash);
    EXPECT_EQ(how.squash_height, 224);
    EXPECT_EQ(how.squash_width, 224);
    EXPECT_EQ(how.resample, Resample::kBilinear);
    EXPECT_EQ(how.mean, (Triple{0.5, 0.5, 0.5}));
  }
}

TEST(FindPreprocessing, TransformersFlags) {
  const auto deit = transformers(
      R"({"feature_extractor_type": "DeiTFeatureExtractor", "size": 256, "crop_size": 224})");
  EXPECT_EQ(deit.fit, Fit::kSquash);
  EXPECT_EQ(deit.squash_height, 256);
  EXPECT_EQ(deit.height, 224);
  const auto raw = transformers(
      R"({"image_processor_type": "CLIPImageProcessor", "do_rescale": false, "do_normalize": false})");
  EXPECT_EQ(raw.scale, 1);
  EXPECT_EQ(raw.mean, (Triple{0, 0, 0}));
  EXPECT_EQ(raw.std, (Triple{1, 1, 1}));
  EXPECT_EQ(transformers(R"({"do_resize": false, "crop_size": 224})").resize, 0);
  EXPECT_EQ(transformers(R"({"size": {"shortest_edge": 256}, "crop_size": 224})").resize, 256);
}

TEST(FindPreprocessing, TransformersRefusals) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { transformers(text); });
  };
  expect_parts(
      refusal(R"({"crop_size": 336, "size": 336})"), "preprocessor_config.json: crop_size",
      "336 x 336", "the model takes 224 x 224");
  expect_parts(refusal(R"({"size": {"height": 384, "width": 384}})"), "size", "384 x 384");
  expect_parts(refusal(R"({"size": {"longest_edge": 224}})"), "longest_edge", "not implemented");
  expect_parts(refusal(R"({"size": {"shortest_edge": 1, "longest_edge": 2}})"), "not implemented");
  expect_parts(refusal(R"({"size": {"shortest_edge": 224}})"), "do_center_crop", "many sizes");
  expect_parts(refusal(R"({"do_resize": false})"), "many sizes");
  expect_parts(refusal(R"({"resample": 1})"), "resample", "found 1");
  expect_parts(refusal(R"({"do_pad": true})"), "do_pad");
  expect_parts(
      refusal(R"({"image_processor_type": "ConvNextImageProcessor"})"), "ConvNextImageProcessor",
      "CLIPImageProcessor");
  expect_parts(
      refusal(R"({"image_mean": [0.5, 0.5]})"), "image_mean", "three numbers", "[0.5,0.5]");
  expect_parts(refusal(R"({"image_std": [0.5, 0, 0.5]})"), "image_std", "above 0");
  expect_parts(refusal(R"({"size": -1})"), "size", "found -1");
  expect_parts(refusal(R"({"size": {"height": 1e30, "width": 1}})"), "height");
}

TEST(FindPreprocessing, OpenClip) {
  const auto silent = openclip("{}", 32);
  EXPECT_EQ(silent.fit, Fit::kCrop);
  EXPECT_EQ(silent.resize, 32);
  EXPECT_EQ(silent.resample, Resample::kBicubic);
  EXPECT_EQ(silent.mean, kClipMean);
  const auto siglip = openclip(
      R"({"size": [384, 384], "mode": "RGB", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
          "interpolation": "bilinear", "resize_mode": "squash", "fill_color": 0})",
      384);
  EXPECT_EQ(siglip.fit, Fit::kSquash);
  EXPECT_EQ(siglip.squash_width, 384);
  EXPECT_EQ(siglip.resample, Resample::kBilinear);
  EXPECT_EQ(siglip.mean, (Triple{0.5, 0.5, 0.5}));
  expect_parts(siglip.origin, "open_clip_config.json: preprocess_cfg");
  const auto refusal = [](const std::string& text) { return error_of([&] { openclip(text); }); };
  expect_parts(
      refusal(R"({"resize_mode": "longest"})"), "preprocess_cfg.resize_mode", "\"longest\"");
  expect_parts(refusal(R"({"size": 336})"), "preprocess_cfg.size", "336 x 336", "224 x 224");
  expect_parts(refusal(R"({"interpolation": "random"})"), "\"random\"", "not implemented");
  expect_parts(refusal(R"({"mode": "L"})"), "expected RGB");
  expect_parts(refusal(R"({"size": [1, 2, 3]})"), "one or two");
}

TEST(FindPreprocessing, Timm) {
  const auto how = timm(
      R"({"input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.9,
          "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]})");
  EXPECT_EQ(how.fit, Fit::kCrop);
  EXPECT_EQ(how.resize, 248);  // floor(248.9)
  EXPECT_EQ(how.height, 224);
  EXPECT_EQ(how.mean, (Triple{0.5, 0.5, 0.5}));
  expect_parts(how.origin, "config.json: pretrained_cfg");
  const auto squash = timm(R"({"crop_mode": "squash", "crop_pct": 0.95})");
  EXPECT_EQ(squash.fit, Fit::kSquash);
  EXPECT_EQ(squash.squash_height, 235);
  EXPECT_EQ(squash.mean[0], 0.485);
  EXPECT_EQ(timm("{}").resize, 256);
  const auto refusal = [](const std::string& text) { return error_of([&] { timm(text); }); };
  expect_parts(refusal(R"({"crop_mode": "border"})"), "pretrained_cfg.crop_mode", "\"border\"");
  expect_parts(refusal(R"({"input_size": [3, 384, 384]})"), "384 x 384", "224 x 224");
  expect_parts(refusal(R"({"input_size": [1, 224, 224]})"), "[3, height, width]", "[1,224,224]");
  expect_parts(refusal(R"({"crop_pct": 0})"), "crop_pct", "found 0");
  expect_parts(refusal(R"({"crop_pct": -1})"), "crop_pct", "found -1");
  expect_parts(refusal(R"({"interpolation": "lanczos"})"), "\"lanczos\"");
}

TEST(FindPreprocessing, OldTimmHasItAtTheTop) {
  const Files files;
  files.directory.file(
      "config.json", R"({"architecture": "vit", "crop_pct": 1.0, "mean": [0, 0, 0]})");
  const auto how = files.find("timm_vit", 224);
  EXPECT_EQ(how.resize, 224);
  EXPECT_EQ(how.mean, (Triple{0, 0, 0}));
}

TEST(FindPreprocessing, WithoutFilesTheFamilysDefaults) {
  const Files files;
  files.directory.file("config.json", R"({"architecture": "vit_tiny_patch16_224"})");
  for (const char* family : {"clip", "openclip"}) {
    const auto how = files.find(family, 224);
    EXPECT_EQ(how.mean, kClipMean);
    EXPECT_EQ(how.origin, std::string("defaults of ") + family);
  }
  EXPECT_EQ(files.find("vit", 224).fit, Fit::kSquash);
  EXPECT_EQ(files.find("vit", 224).mean, (Triple{0.5, 0.5, 0.5}));
  EXPECT_EQ(files.find("timm_vit", 224).resize, 248);
  EXPECT_EQ(files.find("timm_vit", 224).origin, "defaults of timm_vit");
}

TEST(FindPreprocessing, AFamilyReadsItsOwnFile) {
  const Files files;
  files.directory.file(
      "preprocessor_config.json", R"({"crop_size": 224, "image_mean": [0, 0, 0]})");
  files.directory.file("open_clip_config.json", R"({"preprocess_cfg": {"mean": [1, 1, 1]}})");
  EXPECT_EQ(files.find("openclip", 224).mean[0], 1);
  EXPECT_EQ(files.find("clip", 224).mean[0], 0);
  files.directory.file("open_clip_config.json", R"({"model_cfg": {}})");
  EXPECT_EQ(files.find("openclip", 224).mean[0], 0);
}

}  // namespace
}  // namespace theseus::data
