// Whole trainings of tiny models: what changes, what stays, and that an interruption changes nothing.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/data/sampling.h"
#include "theseus/gradient/gradients.h"
#include "theseus/train/batches.h"
#include "theseus/train/choose.h"
#include "theseus/train/finetune.h"
#include "theseus/train/held_out.h"
#include "theseus/train/lora.h"
#include "theseus/train/save.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;

const std::string kFixtures = std::string(THESEUS_SOURCE_DIR) + "/tests/fixtures/evaluate/";
const auto kSilent = [](double, double, const std::string&) {};

FinetuneOptions clip_options(const fs::path& out) {
  FinetuneOptions options{
      .model = kFixtures + "clip", .out = out, .data = kFixtures + "images.csv"};
  options.templates = {"a photo of a {c}."};
  options.steps = 6;
  options.batch_size = 8;
  options.rate = 1e-3;
  options.validate_every = 2;
  options.save_every = 0;
  options.words = {{"command", "finetune"}};
  options.version = "test";
  return options;
}

FinetuneOptions llama_options(const fs::path& out) {
  FinetuneOptions options{
      .model = kFixtures + "llama", .out = out, .data = kFixtures + "texts.jsonl"};
  options.validation = "none";
  options.steps = 4;
  options.batch_size = 2;
  options.rate = 1e-2;
  options.words = {{"command", "finetune"}};
  options.version = "test";
  return options;
}

std::map<std::string, std::string> bytes_of(const fs::path& directory) {
  std::map<std::string, std::string> result;
  for (const auto& entry : fs::directory_iterator(directory)) {
    result[entry.path().filename().string()] = tests::read_bytes(entry.path());
  }
  return result;
}

TEST(Finetune, ChangesTheImageTowerAlone) {
  const tests::ScratchDir scratch;
  const auto record = finetune(clip_options(scratch / "out"), kSilent);
  const auto base = checkpoint::Checkpoint::open(kFixtures + "clip");
  const auto tuned = checkpoint::Checkpoint::open(scratch / "out");
  ASSERT_EQ(base.tensors().size(), tuned.tensors().size());
  int changed = 0;
  for (const auto& info : base.tensors()) {
    const bool image = info.name.starts_with("vision") || info.name.starts_with("visual");
    const bool same = at::equal(base.tensor(info.name), tuned.tensor(info.name));
    EXPECT_TRUE(image || same) << info.name;
    changed += same ? 0 : 1;
  }
  EXPECT_EQ(changed, record.at("trained").at("tensors").get<int>());
  EXPECT_EQ(record.at("head"), "zero-shot");
  EXPECT_EQ(record.at("curve").size(), 4);  // steps 0, 2, 4, 6
  EXPECT_EQ(record.at("losses").size(), 6);
  EXPECT_LT(record.at("losses")[5].at("value"), record.at("losses")[0].at("value"));
  EXPECT_FALSE(fs::exists(scratch / "out.partial"));
}

TEST(Finetune, KeepsTheBestStep) {
  const tests::ScratchDir scratch;
  auto options = clip_options(scratch / "long");
  options.rate = 3e-2;  // too much: it gets worse again
  options.steps = 12;
  options.warmup = 0;
  const auto record = finetune(options, kSilent);
  const auto best = record.at("best").at("step").get<int64_t>();
  for (const auto& point : record.at("curve")) {
    EXPECT_TRUE(point.at("step") == 0 || point.at("value") <= record.at("best").at("value"));
  }
  // The weights that were written are those of that step.
  auto tuned = model::Model::open(scratch / "long");
  FinetuneOptions measure = clip_options(scratch / "measure");
  measure.model = scratch / "long";
  measure.steps = 1;
  const auto again = finetune(measure, kSilent);
  EXPECT_EQ(again.at("curve")[0].at("value"), record.at("best").at("value"));
  const auto at_best = std::find_if(
      record.at("curve").begin(), record.at("curve").end(),
      [&](const auto& point) { return point.at("step") == best; });
  EXPECT_NEAR(again.at("curve")[0].at("loss"), at_best->at("loss").get<double>(), 1e-6);
}

// Stopped in the middle by an exception, twice: the same bytes as in one go.
TEST(Finetune, GoesOnWhereItWasStopped) {
  const tests::ScratchDir scratch;
  finetune(clip_options(scratch / "whole"), kSilent);
  struct Stop : std::exception {};
  for (const double last : {2.0, 5.0}) {
    EXPECT_ANY_THROW(finetune(
        clip_options(scratch / "parts"), [&](double done, double, const std::string& doing) {
          if (done == last && doing.starts_with("training: loss")) {
            throw Stop();
          }
        }));
    EXPECT_TRUE(fs::exists(scratch / "parts.partial"));
    EXPECT_FALSE(fs::exists(scratch / "parts"));
  }
  // What a crash leaves at the end of the losses is not read.
  std::ofstream(scratch / "parts.partial" / kLossesFile, std::ios::app) << "{\"step\": 99, ";
  auto options = clip_options(scratch / "parts");
  options.resume = true;
  finetune(options, kSilent);
  EXPECT_EQ(bytes_of(scratch / "whole"), bytes_of(scratch / "parts"));
  EXPECT_TRUE(finetune(options, kSilent).at("there_before").get<bool>());
  options.out = scratch / "other";
  tests::expect_parts(
      tests::error_of([&] { finetune(options, kSilent); }), "--resume", "no unfinished work");
  EXPECT_FALSE(fs::exists(scratch / "other.partial"));
}

TEST(Finetune, ImagesThatAreNotKeptAreTheSame) {
  const tests::ScratchDir scratch;
  auto model = model::Model::open(kFixtures + "clip");
  model::Reader reader(model, 0);
  const auto examples = data::open_examples(kFixtures + "images.csv", "");
  const BatchOptions kept{.batch_size = 16, .seed = 3, .keep_bytes = int64_t{1} << 30};
  const BatchOptions read{.batch_size = 16, .seed = 3, .keep_bytes = 0};
  const Portion portion{.examples = &examples, .places = data::every(examples)};
  const Count silent = [](int64_t, int64_t) {};
  Batches from_memory(portion, model, reader, kept, silent);
  Batches from_disk(portion, model, reader, read, silent);
  ASSERT_EQ(from_disk.steps_in_epoch(), 2);
  std::vector<at::Tensor> labels;
  for (const int64_t step : {0, 1, 2, 3, 3, 1}) {
    const auto one = from_memory.read(step), other = from_disk.read(step);
    EXPECT_TRUE(at::equal(one.batch.at("pixel_values"), other.batch.at("pixel_values"))) << step;
    EXPECT_TRUE(at::equal(one.labels, other.labels)) << step;
    labels.push_back(one.labels);
  }
  EXPECT_FALSE(at::equal(labels[0], labels[2]));  // another epoch, another order
  EXPECT_TRUE(at::equal(labels[3], labels[4]));
  tests::expect_parts(
      tests::error_of([&] { Batches(portion, model, reader, {.batch_size = 41}, silent); }),
      "--batch-size 41", "only 40 examples");
}

// What is measured goes through the model in the parts that training uses, and is the same.
TEST(HeldOut, MeasuresInParts) {
  auto model = model::Model::open(kFixtures + "clip");
  model::Reader reader(model, 0);
  const auto examples = data::open_examples(kFixtures + "images.csv", "");
  const Count silent = [](int64_t, int64_t) {};
  const auto loss = gradient::loss_for(model, reader, examples, {"a photo of a {c}."});
  std::vector<int64_t> sizes;
  const gradient::Loss watched = [&](const model::Outputs& outputs,
                                     const gradient::Labelled& batch) {
    sizes.push_back(batch.size());
    return loss(outputs, batch);
  };
  HeldOut held_out(
      {&examples, data::every(examples)}, model, reader, {.batch_size = 32}, 0, silent);
  const auto whole = held_out.measure(watched, 0, silent);
  EXPECT_EQ(sizes, (std::vector<int64_t>{32, 8}));
  sizes.clear();
  const auto parts = held_out.measure(watched, 12, silent);
  EXPECT_EQ(sizes, (std::vector<int64_t>{12, 12, 8, 8}));
  EXPECT_EQ(parts.count, 40);
  EXPECT_EQ(parts.right, whole.right);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-6);
}

// The factors beside the weights compute what they compute multiplied into them.
TEST(Lora, BeginsAsTheBaseAndMergesAsItRuns) {
  auto model = tests::open_case("mistral");
  const auto inputs = tests::case_inputs("mistral");
  const c10::NoGradGuard no_gradients;
  const auto base = model.forward(inputs).at("logits");
  gradient::Trainable trainable(model);
  const auto choice = choose_trained(
      model.architecture(), false, {}, {.adapt = {"q_proj", "down_proj"}, .low_rank = true});
  ASSERT_EQ(choice.modules.size(), 2 * static_cast<size_t>(model.architecture().blocks()));
  begin_lora(choice.modules, 2, 4, 0, {}, trainable);
  EXPECT_TRUE(at::equal(model.forward(inputs).at("logits"), base));
  EXPECT_EQ(trainable.low_rank(choice.modules.front()).scale, 2);
  for (const auto& [name, leaf] : trainable.leaves()) {
    leaf.detach().copy_(at::randn_like(leaf.detach()) * 0.1);
  }
  const auto adapted = model.forward(inputs).at("logits");
  EXPECT_GT((adapted - base).abs().max().item<double>(), 0.01);
  auto merged = tests::open_case("mistral");
  for (const auto& module : choice.modules) {
    const auto weight = module + ".weight";
    merged.weights().replace(
        weight, merged.weights()[weight] + trainable.low_rank(module).product());
  }
  EXPECT_LT(
      (merged.forward(inputs).at("logits") - adapted).abs().max().item<double>(),
      1e-5 * adapted.abs().max().item<double>());
}

TEST(Lora, AdapterIsWhatWasTrained) {
  const tests::ScratchDir scratch;
  auto options = llama_options(scratch / "adapter");
  options.batch_size = 4;  // all of them
  options.rank = 2;
  options.lora_on = {"q_proj"};
  const auto record = finetune(options, kSilent);
  EXPECT_EQ(record.at("write"), "adapter");
  EXPECT_LT(record.at("losses")[3].at("value"), record.at("losses")[0].at("value"));
  const auto adapter = update::read_adapter(scratch / "adapter");
  EXPECT_EQ(adapter.rank, 2);
  EXPECT_EQ(adapter.alpha, 4);
  EXPECT_EQ(adapter.task, "CAUSAL_LM");
  for (const auto& [module, factors] : adapter.low_rank) {
    EXPECT_TRUE(module.ends_with("q_proj")) << module;
    EXPECT_GT(factors.norm(), 0) << module;
  }
  // Whoever goes on with it begins where it ended.
  auto more = llama_options(scratch / "more");
  more.batch_size = 4;
  more.rank = 2;
  more.lora_on = {"q_proj"};
  more.start_from = (scratch / "adapter").string();
  const auto first = finetune(more, kSilent).at("losses")[0].at("value").get<double>();
  EXPECT_LT(first, record.at("losses")[0].at("value").get<double>());
  more.out = scratch / "rank";
  more.rank = 3;
  tests::expect_parts(
      tests::error_of([&] { finetune(more, kSilent); }), "has rank 2", "--lora is 3");
  more.start_from = kFixtures + "llama";
  tests::expect_parts(tests::error_of([&] { finetune(more, kSilent); }), "must be an adapter");
}

TEST(Finetune, StartsFromATune) {
  const tests::ScratchDir scratch;
  auto options = llama_options(scratch / "first");
  options.freeze = {"embed_tokens", "norm"};
  finetune(options, kSilent);
  auto whole = llama_options(scratch / "whole");
  whole.model = scratch / "first";
  const auto expected = finetune(whole, kSilent).at("losses");
  auto started = llama_options(scratch / "started");
  started.start_from = (scratch / "first").string();
  const auto found = finetune(started, kSilent).at("losses");
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i].at("value"), expected[i].at("value").get<double>(), 1e-4);
  }
  // What the start changed and nothing trains is in the output, too.
  auto frozen = llama_options(scratch / "frozen");
  frozen.start_from = (scratch / "first").string();
  frozen.freeze = {"layers"};
  finetune(frozen, kSilent);
  const auto first = checkpoint::Checkpoint::open(scratch / "first");
  const auto kept = checkpoint::Checkpoint::open(scratch / "frozen");
  for (const auto& info : first.tensors()) {
    if (info.name.find("layers") != std::string::npos) {
      EXPECT_TRUE(at::allclose(first.tensor(info.name), kept.tensor(info.name), 1e-6, 1e-8))
          << info.name;
    }
  }
  auto none = llama_options(scratch / "none");
  none.start_from = kFixtures + "llama";
  tests::error_of([&] { finetune(none, kSilent); });
}

TEST(Finetune, FreezesWhatItIsTold) {
  const tests::ScratchDir scratch;
  auto options = llama_options(scratch / "out");
  options.freeze = {"mlp", "*layernorm*"};
  const auto record = finetune(options, kSilent);
  const auto base = checkpoint::Checkpoint::open(kFixtures + "llama");
  const auto tuned = checkpoint::Checkpoint::open(scratch / "out");
  int changed = 0;
  for (const auto& info : base.tensors()) {
    const bool frozen = info.name.find("mlp") != std::string::npos ||
                        info.name.find("layernorm") != std::string::npos;
    const bool same = at::equal(base.tensor(info.name), tuned.tensor(info.name));
    EXPECT_EQ(same, frozen) << info.name;
    changed += same ? 0 : 1;
  }
  EXPECT_GT(changed, 0);
  options.out = scratch / "all";
  options.freeze = {"*"};
  tests::expect_parts(tests::error_of([&] { finetune(options, kSilent); }), "everything is frozen");
}

TEST(Finetune, RefusesWhatCannotBe) {
  const tests::ScratchDir scratch;
  const auto refused = [&](auto&& change, const std::string& says) {
    auto options = clip_options(scratch / "out");
    change(options);
    tests::expect_parts(tests::error_of([&] { finetune(options, kSilent); }), says);
    EXPECT_FALSE(fs::exists(scratch / "out.partial"));
  };
  refused([](auto& o) { o.rate = 0; }, "--lr 0 is not positive");
  refused([](auto& o) { o.rate = NAN; }, "--lr");
  refused([](auto& o) { o.decay = -1; }, "--weight-decay");
  refused([](auto& o) { o.steps = 0; }, "--steps 0");
  refused([](auto& o) { o.warmup = 7; }, "--warmup 7 is more than all 6");
  refused([](auto& o) { o.head = "none"; }, "is none of: new zero-shot keep");
  refused([](auto& o) { o.head = "keep"; }, "no head to keep");
  refused([](auto& o) { o.head = "new"; }, "--head zero-shot");
  refused([](auto& o) { o.templates = {"no class"}; }, "{c}");
  refused([](auto& o) { o.freeze = {"decoder"}; }, "--freeze: nothing is named like 'decoder'");
  refused([](auto& o) { o.lora_on = {"fc1"}; }, "are for --lora");
  refused(
      [](auto& o) {
        o.rank = 2;
        o.lora_on = {"text_model"};
      },
      "--lora-on: nothing is named like 'text_model'");
  refused([](auto& o) { o.rank = 1000; }, "no more than rank");
  refused([](auto& o) { o.batch_size = 40; }, "--batch-size 40: there are only 36");
  refused([](auto& o) { o.limit = 9; }, "too few to hold some out");
  refused([](auto& o) { o.validation = o.data; }, "that are learnt from");
  refused([](auto& o) { o.validation = "nowhere"; }, "nowhere");
  refused([](auto& o) { o.start_from = "nowhere"; }, "nowhere");
  refused([](auto& o) { o.model = kFixtures + "llama"; }, "nothing to learn images by");
  refused([](auto& o) { o.out = o.model / "out"; }, "an input");
}

}  // namespace
}  // namespace theseus::train
