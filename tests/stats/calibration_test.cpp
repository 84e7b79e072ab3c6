#include "theseus/stats/calibration.h"

#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/base/error.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/scratch_dir.h"

namespace theseus::stats {
namespace {

model::Architecture taking(const std::vector<std::string>& inputs) {
  model::Architecture architecture;
  architecture.inputs = inputs;
  return architecture;
}

const std::vector<std::string> kText = {"input_ids", "attention_mask", "token_type_ids"};
const std::vector<std::string> kClip = {"pixel_values", "text"};

// Sequence i holds i in every place.
at::Tensor numbered(int64_t sequences, int64_t tokens = 2) {
  return at::arange(sequences).unsqueeze(1).expand({sequences, tokens}).contiguous();
}

class CalibrationTest : public testing::Test {
 protected:
  Calibration open(
      const model::Batch& tensors,
      const std::vector<std::string>& inputs = kText,
      const Sampling& sampling = {}) const {
    const auto path = scratch_ / "calibration.safetensors";
    tests::write_inputs(path, tensors);
    return Calibration::open(path, taking(inputs), taking(inputs), sampling);
  }
  std::string refusal(
      const model::Batch& tensors,
      const std::vector<std::string>& inputs = kText,
      const Sampling& sampling = {}) const {
    return tests::error_of([&] { open(tensors, inputs, sampling); });
  }

  tests::ScratchDir scratch_;
};

std::vector<int64_t> sequences_in(const model::Batch& batch, const std::string& name) {
  const auto column = batch.at(name).select(1, 0).to(at::kLong).contiguous();
  return {column.data_ptr<int64_t>(), column.data_ptr<int64_t>() + column.numel()};
}

TEST_F(CalibrationTest, GivesBothModelsTheSameBatchesInOrder) {
  const auto calibration =
      open({{"input_ids", numbered(7)}, {"labels", numbered(7)}}, kText, {.batch_size = 3});
  EXPECT_EQ(calibration.sequences(), 7);
  ASSERT_EQ(calibration.batches(), 3);
  EXPECT_TRUE(calibration.shares_ids());
  EXPECT_EQ(sequences_in(calibration.source(1), "input_ids"), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(sequences_in(calibration.target(2), "input_ids"), (std::vector<int64_t>{6}));
  EXPECT_EQ(calibration.source(0).size(), 1U);  // labels are left out
}

TEST_F(CalibrationTest, CutIntoOtherBatchesItIsTheSame) {
  // As drawn: 12 of 20 texts and all of 10 images.
  const auto drawn = open(
      {{"text", numbered(20)}, {"pixel_values", numbered(10).to(at::kFloat)}}, kClip,
      {.batch_size = 4, .batches = 3, .seed = 1});
  const auto cut = drawn.in_batches_of(5);
  EXPECT_EQ(cut.sequences(), 12);
  EXPECT_EQ(cut.batches(), 3);
  EXPECT_EQ(cut.batch_size(), 5);
  for (const std::string name : {"text", "pixel_values"}) {
    std::vector<int64_t> before, after;
    for (int64_t batch = 0; batch < 3; ++batch) {
      for (const auto& [whole, all] : {std::pair(&drawn, &before), std::pair(&cut, &after)}) {
        const auto inputs = whole->pair(batch).target;
        if (inputs.contains(name)) {
          const auto some = sequences_in(inputs, name);
          all->insert(all->end(), some.begin(), some.end());
        }
      }
    }
    EXPECT_EQ(before.size(), name == "text" ? 12U : 10U);
    EXPECT_EQ(before, after) << name;
  }
  const auto first = drawn.pair(0).source.at("pixel_values").clone();
  drawn.forget_images();
  EXPECT_TRUE(at::equal(drawn.pair(0).source.at("pixel_values"), first));
}

TEST_F(CalibrationTest, GivesEachModelItsOwn) {
  const auto calibration = open(
      {{"source/input_ids", numbered(4)},
       {"target/input_ids", numbered(4, 5)},
       {"target/attention_mask", at::ones({4, 5}, at::kLong)}});
  EXPECT_FALSE(calibration.shares_ids());
  EXPECT_EQ(calibration.source(0).at("input_ids").size(1), 2);
  EXPECT_EQ(calibration.target(0).at("input_ids").size(1), 5);
  EXPECT_FALSE(calibration.source(0).contains("attention_mask"));
}

TEST_F(CalibrationTest, KnowsOpenClipsNameForText) {
  const auto calibration = open({{"input_ids", numbered(4)}}, kClip);
  EXPECT_EQ(calibration.source(0).at("text").size(0), 4);
  tests::expect_parts(
      refusal({{"input_ids", numbered(4)}, {"text", numbered(4)}}, kClip), "both", "keep one");
}

TEST_F(CalibrationTest, LetsInputsRunOutAtTheirOwnEnds) {
  const auto calibration = open(
      {{"pixel_values", at::zeros({5, 3, 2, 2})}, {"text", numbered(2)}}, kClip, {.batch_size = 2});
  EXPECT_EQ(calibration.sequences(), 5);
  ASSERT_EQ(calibration.notes().size(), 1U);
  tests::expect_parts(calibration.notes().front(), "of text", "only 2", "5 of others");
  ASSERT_EQ(calibration.batches(), 3);
  EXPECT_TRUE(calibration.source(0).contains("text"));
  EXPECT_FALSE(calibration.source(1).contains("text"));
  EXPECT_EQ(calibration.target(2).at("pixel_values").size(0), 1);
}

TEST_F(CalibrationTest, DrawsBatchesBySeed) {
  const auto draw = [&](uint64_t seed) {
    const auto calibration = open(
        {{"source/input_ids", numbered(40)}, {"target/input_ids", numbered(40, 3)}}, kText,
        {.batch_size = 4, .batches = 3, .seed = seed});
    EXPECT_EQ(calibration.sequences(), 12);
    EXPECT_EQ(calibration.batches(), 3);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < 3; ++i) {
      const auto here = sequences_in(calibration.source(i), "input_ids");
      EXPECT_EQ(here, sequences_in(calibration.target(i), "input_ids"));  // they pair
      all.insert(all.end(), here.begin(), here.end());
    }
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 12U);  // none twice
    return all;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST_F(CalibrationTest, DrawsSequencesBySeed) {
  const auto draw = [&](const Sampling& sampling) {
    const auto calibration = open({{"input_ids", numbered(40)}}, kText, sampling);
    EXPECT_EQ(calibration.available(), 40);
    EXPECT_TRUE(calibration.notes().empty());
    std::vector<int64_t> all;
    for (int64_t i = 0; i < calibration.batches(); ++i) {
      const auto here = sequences_in(calibration.source(i), "input_ids");
      all.insert(all.end(), here.begin(), here.end());
    }
    EXPECT_EQ(std::ssize(all), calibration.sequences());
    return all;
  };
  EXPECT_EQ(draw({.batch_size = 4, .draw = 10}).size(), 10U);
  EXPECT_EQ(draw({.batch_size = 4, .draw = 10}), draw({.batch_size = 4, .most = 10}));
  EXPECT_NE(draw({.batch_size = 4, .draw = 10}), draw({.batch_size = 4, .draw = 10, .seed = 1}));
  EXPECT_EQ(draw({.batch_size = 4, .most = 50}), draw({.batch_size = 4}));  // all, in order
}

TEST_F(CalibrationTest, TakesAllWhereMoreAreAskedForAndSaysSo) {
  for (const auto& [sampling, said] :
       {std::pair(Sampling{.batch_size = 4, .batches = 2}, "--batches 2 of 4"),
        std::pair(Sampling{.batch_size = 4, .batches = int64_t{1} << 40}, "there are only 7"),
        std::pair(Sampling{.batch_size = 1 << 30, .batches = int64_t{1} << 40}, "only 7"),
        std::pair(Sampling{.batch_size = 4, .draw = 8}, "--draw 8: there are only 7")}) {
    const auto calibration = open({{"input_ids", numbered(7)}}, kText, sampling);
    EXPECT_EQ(calibration.sequences(), 7);
    ASSERT_EQ(calibration.notes().size(), 1U);
    tests::expect_parts(calibration.notes().front(), said, "all of them were used");
  }
  EXPECT_TRUE(
      open({{"input_ids", numbered(7)}}, kText, {.batch_size = 4, .draw = 7}).notes().empty());
}

TEST_F(CalibrationTest, RefusesWhatIsOfNoUse) {
  const auto ids = numbered(4);
  tests::expect_parts(refusal({{"labels", ids}}), "no input for the source", "input_ids");
  tests::expect_parts(
      refusal({{"source/input_ids", ids}}), "no input for the target", "target/NAME");
  tests::expect_parts(refusal({{"input_id", ids}}), "input_id", "is not an input", "input_ids");
  tests::expect_parts(refusal({{"input_ids", at::arange(4)}}), "no sequences", "[4]");
  tests::expect_parts(refusal({{"input_ids", at::zeros({0, 3}, at::kLong)}}), "no sequences");
  tests::expect_parts(refusal({{"input_ids", ids}}, kText, {.batch_size = 0}), "batch size of 0");
}

TEST_F(CalibrationTest, RefusesCountsThatDoNotPair) {
  tests::expect_parts(
      refusal({{"source/input_ids", numbered(4)}, {"target/input_ids", numbered(5)}}), "4", "5",
      "must pair");
  tests::expect_parts(
      refusal({{"input_ids", numbered(4)}, {"attention_mask", numbered(3)}}), "attention_mask",
      "another number of sequences");
  tests::expect_parts(refusal({{"attention_mask", numbered(3)}}), "attention_mask");
  // Images pair; their number hides that texts do not.
  tests::expect_parts(
      refusal(
          {{"pixel_values", at::zeros({6, 3, 2, 2})},
           {"source/text", numbered(4)},
           {"target/text", numbered(5)}},
          kClip),
      "text", "4", "5", "must pair");
}

TEST_F(CalibrationTest, RefusesWhatIsNotFinite) {
  auto model = tests::open_case("vit_bare");
  auto inputs = tests::case_inputs("vit_bare");
  inputs.at("pixel_values") = inputs.at("pixel_values").clone();
  inputs.at("pixel_values").view(-1)[5] = NAN;
  tests::expect_parts(
      tests::error_of([&] { open(inputs, model.architecture().inputs); }),
      "pixel_values holds NaN or infinity in sequence 0");
}

}  // namespace
}  // namespace theseus::stats
