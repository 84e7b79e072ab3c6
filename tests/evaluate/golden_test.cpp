// Images and texts through our own reading, tokenizers and models, against transformers doing all of it:
// see tools/goldens/evaluate.py.

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/base/json.h"
#include "theseus/data/wording.h"
#include "theseus/evaluate/evaluate.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"

namespace theseus::evaluate {
namespace {

const std::string kDirectory = std::string(THESEUS_SOURCE_DIR) + "/tests/fixtures/evaluate/";

nlohmann::ordered_json measured(const std::string& model, const EvaluateOptions& options) {
  const c10::NoGradGuard no_gradients;
  auto opened = model::Model::open(kDirectory + model);
  return evaluate(opened, options, [](int64_t, int64_t, const std::string&) {});
}

// The labels are what transformers takes the images for, so all must be right.
TEST(Golden, ZeroShotTakesImagesForWhatTransformersDoes) {
  const auto expected = Json::parse_file(kDirectory + "expected.json").object("clip");
  EvaluateOptions options{.data = kDirectory + "images.csv"};
  options.settings.templates = expected.texts("templates");
  for (const int64_t batch : {1, 7, 64}) {
    options.feed.batch_size = batch;
    const auto record = measured("clip", options);
    EXPECT_EQ(record.at("task"), "zero-shot");
    EXPECT_EQ(record.at("count"), expected.integer("images"));
    EXPECT_EQ(record.at("value"), 1.0);
  }
  options.settings.templates = {"a {c} is not what this shows"};  // other prompts, other answers
  const auto other = measured("clip", options);
  EXPECT_LT(other.at("value"), 1.0);
  EXPECT_EQ(other.at("prompts"), nlohmann::ordered_json({"a {c} is not what this shows"}));
  options.settings.templates.clear();  // the data bring none, so there is a common one
  EXPECT_EQ(measured("clip", options).at("prompts"), nlohmann::ordered_json({"a photo of a {c}."}));
}

TEST(Golden, PerplexityIsThatOfTransformers) {
  const auto expected = Json::parse_file(kDirectory + "expected.json").object("llama");
  EvaluateOptions options{.data = kDirectory + "texts.jsonl"};
  for (const int64_t batch : {1, 4}) {  // with and without padding
    options.feed.batch_size = batch;
    const auto record = measured("llama", options);
    EXPECT_EQ(record.at("metric"), "perplexity");
    EXPECT_NEAR(
        std::log(record.at("value").get<double>()), std::log(expected.number("perplexity")), 1e-5);
  }
}

// Rows of 20 ids: 63 + 4 first ids of the four texts (and an end each, if the tokenizer has one).
TEST(Golden, PackedRowsAreFull) {
  EvaluateOptions options{.data = kDirectory + "texts.jsonl"};
  options.feed.pack = 20;
  const auto record = measured("llama", options);
  EXPECT_EQ(record.at("count"), 3);
  EXPECT_GT(record.at("value"), 1);
  options.feed.batch_size = 1;
  EXPECT_NEAR(
      std::log(measured("llama", options).at("value").get<double>()),
      std::log(record.at("value").get<double>()), 1e-5);
  options.feed.pack = 100;
  tests::expect_parts(tests::error_of([&] { measured("llama", options); }), "less than one row");
  options.data = kDirectory + "images.csv";
  options.settings.templates = {"{c}"};
  tests::expect_parts(tests::error_of([&] { measured("clip", options); }), "--pack is for");
}

// Texts and answers in one row, computed here: only answers count, and they see all that stands before.
TEST(Golden, PackedAnswersAreScoredAlone) {
  const c10::NoGradGuard no_gradients;
  EvaluateOptions options{.data = kDirectory + "texts.jsonl"};
  options.answer = "{answer}";
  auto model = model::Model::open(kDirectory + "llama");
  const model::Reader reader(model, 0);
  const auto examples = open_data(options.data, "", model, options);
  std::vector<int64_t> ids, places;  // places: of answers' ids
  for (int64_t i = 0; i < examples.size(); ++i) {
    const auto text = data::worded(examples, examples.wording, i);
    for (const auto* words : {&text.first, &text.answer}) {
      const auto encoded = reader.tokenizer().encode(*words, nullptr, 0);
      for (size_t t = 0; t < encoded.ids.size(); ++t) {
        const bool added = encoded.spans[t] == std::pair<int64_t, int64_t>();
        const bool answer = words == &text.answer;
        if (added && (answer || t > 0)) {
          continue;  // a row has one begin a text
        }
        if (answer) {
          places.push_back(static_cast<int64_t>(ids.size()));
        }
        ids.push_back(encoded.ids[t]);
      }
    }
    if (reader.tokenizer().end() >= 0) {
      places.push_back(static_cast<int64_t>(ids.size()));
      ids.push_back(reader.tokenizer().end());
    }
  }
  const auto row = at::tensor(ids, at::kLong).unsqueeze(0);
  const auto log_p = model.forward({{"input_ids", row}, {"attention_mask", at::ones_like(row)}})
                         .at("logits")[0]
                         .to(at::kDouble)
                         .log_softmax(1);
  double sum = 0;
  for (const auto place : places) {
    sum -= log_p[place - 1][ids[static_cast<size_t>(place)]].item<double>();
  }
  options.feed.pack = static_cast<int64_t>(ids.size());
  const auto record = measured("llama", options);
  EXPECT_EQ(record.at("count"), 1);
  EXPECT_NEAR(
      std::log(record.at("value").get<double>()), sum / static_cast<double>(places.size()), 1e-5);
}

TEST(Golden, RefusesWhatCannotBeMeasured) {
  EvaluateOptions options{.data = kDirectory + "images.csv"};
  options.task = "classify";
  tests::expect_parts(
      tests::error_of([&] { measured("clip", options); }), "no classification head");
  options.task = "summarise";
  tests::error_of([&] { measured("clip", options); });
  options.task = "zero_shots";  // words are those of the command line
  tests::expect_parts(tests::error_of([&] { measured("clip", options); }), " zero-shot");
  options.task = "";
  tests::expect_parts(tests::error_of([&] { measured("llama", options); }), "takes no images");
  options.data = kDirectory + "nowhere";
  tests::error_of([&] { measured("llama", options); });
}

}  // namespace
}  // namespace theseus::evaluate
