// Where the answer is known: a target that computes the same function, and a tune of the very layers that are
// fitted.

#include "theseus/transport/imitate.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"
#include "theseus/transport/writer_taps.h"

#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::transport {
namespace {

const ImitateMemory kQuiet = {.watch = [](int64_t, int64_t) {}};
const ImitateOptions kExact = {.tokens = "", .map_ridge = 1e-7, .fit_ridge = 1e-7};

// A tensor by its own name, which may not be the stored one.
at::Tensor tensor_of(const model::Model& model, const std::string& name) {
  for (const auto& parameter : model.architecture().parameters) {
    if (parameter.tensor == name) {
      return model.checkpoint().tensor(parameter.stored).to(at::kFloat);
    }
  }
  throw InternalError("no tensor " + name);
}

// The weights that write the stream in all blocks, changed by a tenth of their spread.
std::map<std::string, at::Tensor> tuned_writers(const model::Model& source) {
  std::map<std::string, at::Tensor> tensors;
  at::manual_seed(3);
  for (int64_t block = 0; block < source.architecture().blocks(); ++block) {
    for (const auto* writer : writers_in(source.architecture(), block)) {
      const auto base = tensor_of(source, writer->weight);
      tensors[writer->weight] = base + 0.1 * base.std() * at::randn(base.sizes());
    }
  }
  return tensors;
}

std::map<std::string, at::Tensor> features_with(
    model::Model& model,
    const model::Batch& inputs,
    const std::map<std::string, at::Tensor>& tensors) {
  for (const auto& [name, value] : tensors) {
    model.weights().replace(name, value);
  }
  const auto features = model.forward(inputs);
  for (const auto& [name, value] : tensors) {
    model.weights().restore(name);
  }
  return features;
}

// A target that computes the same function, and a tune of the very layers that are fitted.
void expect_repeated(const std::string& name) {
  SCOPED_TRACE(name);
  const tests::ScratchDir scratch;
  const auto planted = tests::plant(name, tests::Planting::kWidened, scratch.path());
  auto source = model::Model::open(planted.source);
  auto target = model::Model::open(planted.target);
  const auto changed = tuned_writers(source);
  const auto tuned = scratch.path() / "writers.safetensors";
  checkpoint::write_safetensors(tuned, {changed.begin(), changed.end()});
  const auto update = SourceUpdate::open(tuned, source);
  const auto inputs = scratch.path() / "inputs.safetensors";
  tests::write_inputs(inputs, tests::planted_calibration(source, 256, 11));
  const auto calibration =
      stats::Calibration::open(inputs, source.architecture(), target.architecture(), {});

  const auto found = imitate(source, update, target, {&calibration}, kExact, kQuiet);

  EXPECT_GE(found.layers.size(), 2u * static_cast<size_t>(target.architecture().blocks()));
  for (const auto& layer : found.layers) {
    EXPECT_GT(layer.share, 0.99) << layer.module;
    EXPECT_GT(layer.wanted, 0.001) << layer.module;
  }
  std::map<std::string, at::Tensor> updated;
  for (const auto& [tensor, delta] : found.deltas) {
    updated[tensor] = tensor_of(target, tensor) + delta;
  }
  const auto unseen = tests::planted_calibration(source, 16, 12);
  for (const auto& [output, base] : features_with(source, unseen, {})) {
    const auto as_target = [&, o = output](const at::Tensor& value) {
      return planted.as_target(o, value);
    };
    const auto wanted =
        as_target(features_with(source, unseen, changed).at(output)) - as_target(base);
    const auto change = features_with(target, unseen, updated).at(output) -
                        features_with(target, unseen, {}).at(output);
    EXPECT_LT(tests::frobenius_error(change, wanted), 0.05) << output;
  }
}

TEST(Imitate, RepeatsAChangeOfTheLayersThatItFits) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : tests::planted_cases()) {
    expect_repeated(name);
  }
}

// With what an earlier process knew, blocks are the same to the last bit.
TEST(Imitate, GoesOn) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted =
      tests::plant(tests::planted_cases().front(), tests::Planting::kWidened, scratch.path());
  auto source = model::Model::open(planted.source);
  auto target = model::Model::open(planted.target);
  const auto update = SourceUpdate::open(planted.tuned, source);
  const auto inputs = scratch.path() / "inputs.safetensors";
  tests::write_inputs(inputs, tests::planted_calibration(source, 64, 11));
  const auto calibration =
      stats::Calibration::open(inputs, source.architecture(), target.architecture(), {});
  std::vector<Imitation> saved;
  auto memory = kQuiet;
  memory.save = [&](const Imitation& so_far) { saved.push_back(so_far); };
  const auto whole = imitate(source, update, target, {&calibration}, {}, memory);
  ASSERT_EQ(static_cast<int64_t>(saved.size()), target.architecture().blocks());
  memory.known = saved.front();
  saved.clear();
  const auto again = imitate(source, update, target, {&calibration}, {}, memory);
  EXPECT_EQ(static_cast<int64_t>(saved.size()), target.architecture().blocks() - 1);
  ASSERT_EQ(again.layers.size(), whole.layers.size());
  for (size_t i = 0; i < whole.layers.size(); ++i) {
    EXPECT_EQ(again.layers[i].share, whole.layers[i].share) << whole.layers[i].module;
  }
  ASSERT_EQ(again.deltas.size(), whole.deltas.size());
  for (const auto& [tensor, delta] : whole.deltas) {
    EXPECT_TRUE(at::equal(delta, again.deltas.at(tensor))) << tensor;
  }
}

TEST(Imitate, RefusesNoExamples) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", tests::Planting::kWidened, scratch.path());
  auto source = model::Model::open(planted.source);
  auto target = model::Model::open(planted.target);
  const auto update = SourceUpdate::open(planted.tuned, source);
  EXPECT_THROW(imitate(source, update, target, {}, {}, kQuiet), InputError);
}

TEST(Imitate, SpreadsBlocksEvenly) {
  EXPECT_EQ(evenly_followed(4, 4), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(evenly_followed(2, 4), (std::vector<int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(evenly_followed(4, 2), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(evenly_followed(2, 3), (std::vector<int64_t>{0, 1, 1}));
}

}  // namespace
}  // namespace theseus::transport
