// The planted truths of tests/support/planted.h are true.

#include "tests/support/planted.h"

#include <map>
#include <set>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/model/golden.h"
#include "theseus/model/model.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::model {
namespace {

using tests::Changes;
using tests::Planted;
using tests::Planting;
using tests::PlantOptions;

bool takes(std::string_view family, Planting planting) {
  return planting != Planting::kRotated || family == "llama" || family == "t5";
}

std::string family_of(const std::string& name) {
  return name == "openclip" ? name : locate(tests::case_path(name)).family;
}

// Runs `check` on every case of every family that the planting is for, and fails when a family has
// none.
template <class Check>
void each(Planting planting, const PlantOptions& options, const Check& check) {
  const c10::NoGradGuard no_gradients;
  std::set<std::string_view> missing;
  for (const auto& plugin : all_families()) {
    if (takes(plugin.name, planting)) {
      missing.insert(plugin.name);
    }
  }
  for (const auto& name : tests::planted_cases()) {
    if (takes(family_of(name), planting)) {
      SCOPED_TRACE(name);
      const tests::ScratchDir scratch;
      check(name, tests::plant(name, planting, scratch.path(), options));
      missing.erase(family_of(name));
    }
  }
  EXPECT_TRUE(missing.empty()) << "no case for " << *missing.begin();
}

Outputs outputs(const std::filesystem::path& path, const Batch& inputs) {
  return Model::open(path).forward(inputs);
}

class EveryPlanting : public testing::TestWithParam<Planting> {};

TEST_P(EveryPlanting, ComputesTheSameFunction) {
  each(GetParam(), {.changes = Changes::kAll}, [](const auto&, const Planted& planted) {
    const auto base = outputs(planted.source, planted.inputs);
    const auto tuned = outputs(planted.tuned, planted.inputs);
    const auto target = outputs(planted.target, planted.inputs);
    const auto expected = outputs(planted.expected, planted.inputs);
    EXPECT_EQ(base.size(), target.size());
    for (const auto& [name, value] : base) {
      EXPECT_LT(relative_error(target.at(name), planted.as_target(name, value)), 1e-5) << name;
      EXPECT_LT(relative_error(expected.at(name), planted.as_target(name, tuned.at(name))), 1e-5)
          << name;
      EXPECT_GT(relative_error(tuned.at(name), value), 1e-3) << name;
    }
  });
}

// How far `found` is from the nearest multiple of `expected`.
double error_up_to_a_factor(const at::Tensor& found, const at::Tensor& expected) {
  const auto wide = found.to(at::kDouble);
  const auto factor = wide.mul(expected).sum() / expected.square().sum();
  return relative_error(wide, expected * factor);
}

TEST_P(EveryPlanting, RelatesTheActivationsOfEveryLinearLayerByItsMaps) {
  each(GetParam(), {}, [](const auto&, const Planted& planted) {
    auto source = Model::open(planted.source);
    RecordingTaps before;
    RecordingTaps after;
    source.forward(planted.inputs, &before);
    Model::open(planted.target).forward(planted.inputs, &after);
    const auto rows = before.tensors();
    const auto target_rows = after.tensors();
    const auto compare = [&](const std::string& tap, const std::vector<std::string>& spaces) {
      int64_t at = 0;
      int64_t target_at = 0;
      for (const auto& space : spaces) {
        if (!is_fixed(space)) {
          const auto& map = planted.maps.at(space);
          const auto s = rows.at(tap).narrow(-1, at, map.size(0)).to(at::kDouble);
          const auto r = target_rows.at(tap).narrow(-1, target_at, map.size(1));
          EXPECT_LT(error_up_to_a_factor(r, s.matmul(map)), 1e-5) << tap << " " << space;
          at += map.size(0);
          target_at += map.size(1);
        }
      }
    };
    for (const auto& linear : source.architecture().linears) {
      compare("in/" + linear.module, {linear.in});
      compare("out/" + linear.module, linear.out);
    }
  });
}

at::Tensor value_of(const Model& model, const Parameter& parameter) {
  const auto tensor = model.checkpoint().tensor(parameter.stored).to(at::kDouble);
  return parameter.fused() ? tensor.narrow(0, parameter.row, parameter.shape[0]) : tensor;
}

// T_out^T delta T_in, delta T.
at::Tensor transported(at::Tensor delta, const Parameter& parameter, const Planted& planted) {
  for (int64_t i = 0; i < delta.dim(); ++i) {
    const auto& space = parameter.axes[static_cast<size_t>(i)];
    delta = at::tensordot(delta, planted.maps.at(space), {i}, {0}).movedim(-1, i);
  }
  return delta;
}

void expect_transported_deltas(const Planted& planted) {
  const auto source = Model::open(planted.source);
  const auto tuned = Model::open(planted.tuned);
  const auto target = Model::open(planted.target);
  const auto expected = Model::open(planted.expected);
  const auto& target_parameters = target.architecture().parameters;
  size_t changed = 0;
  for (size_t i = 0; i < target_parameters.size(); ++i) {
    const auto& parameter = source.architecture().parameters[i];
    const auto delta = value_of(tuned, parameter) - value_of(source, parameter);
    const auto target_delta =
        value_of(expected, target_parameters[i]) - value_of(target, target_parameters[i]);
    if (delta.count_nonzero().item<int64_t>() == 0) {
      EXPECT_EQ(target_delta.count_nonzero().item<int64_t>(), 0) << parameter.name;
      continue;
    }
    ++changed;
    EXPECT_NE(parameter.role, Role::kTable) << parameter.name;
    // Both are differences of float32 numbers twenty times their size.
    EXPECT_LT(relative_error(target_delta, transported(delta, parameter, planted)), 1e-5)
        << parameter.name;
  }
  EXPECT_GE(changed, 6U * static_cast<size_t>(source.architecture().blocks()));
}

TEST_P(EveryPlanting, ChangesTheTargetsWeightsAsTransportWould) {
  for (const bool confine_mlp : {false, true}) {
    each(
        GetParam(), {.seed = 5, .confine_mlp = confine_mlp},
        [](const auto&, const Planted& planted) { expect_transported_deltas(planted); });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Planted,
    EveryPlanting,
    testing::Values(Planting::kPermuted, Planting::kWidened, Planting::kRotated),
    [](const auto& test) {
      return test.param == Planting::kPermuted  ? "Permuted"
             : test.param == Planting::kWidened ? "Widened"
                                                : "Rotated";
    });

TEST(Planted, ChangesBiasesAndNormsAsTransportWouldWherePermuted) {
  each(Planting::kPermuted, {.changes = Changes::kAll}, [](const auto&, const Planted& planted) {
    expect_transported_deltas(planted);
  });
}

TEST(Planted, HoldsInBfloat16) {
  for (const auto planting : {Planting::kPermuted, Planting::kWidened}) {
    each(
        planting, {.dtype = at::kBFloat16, .changes = Changes::kAll},
        [&](const std::string& name, const Planted& planted) {
          const auto target = Model::open(planted.target);
          for (const auto& info : target.checkpoint().tensors()) {
            EXPECT_EQ(info.dtype, "BF16") << info.name;
          }
          const auto found = outputs(planted.expected, planted.inputs);
          // Scaled tied heads need a factor sqrt(2), which bfloat16 rounds by 2^-9 at most.
          const bool rounded =
              planting == Planting::kWidened && name.starts_with("t5_") && name != "t5_own_head";
          for (const auto& [output, value] : outputs(planted.tuned, planted.inputs)) {
            EXPECT_LT(
                relative_error(found.at(output), planted.as_target(output, value)),
                rounded ? 0.01 : 1e-5)
                << output;
          }
        });
  }
}

TEST(Planted, RotatesOnlyRmsNorms) {
  const tests::ScratchDir scratch;
  const auto message =
      tests::error_of([&] { tests::plant("vit", Planting::kRotated, scratch.path()); });
  tests::expect_parts(message, "RMS norms");
}

// A case of each family, and what the decoders differ in.
std::vector<std::string> calibrated() {
  std::vector<std::string> names = {"qwen2_padded", "qwen3_bias", "t5_few_buckets"};
  for (const auto& plugin : all_families()) {
    names.emplace_back(plugin.name);
  }
  return names;
}

std::map<std::string, at::Tensor> calibration_rows(const std::filesystem::path& path) {
  auto model = Model::open(path);
  RecordingTaps taps;
  model.forward(tests::planted_calibration(model, 256, 3), &taps);
  auto rows = taps.tensors();
  for (auto& [tap, value] : rows) {
    value = value.reshape({-1, value.size(-1)}).to(at::kDouble);
  }
  return rows;
}

TEST(Planted, CalibrationSpansTheInputsOfEveryLinearLayer) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : calibrated()) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, Planting::kPermuted, scratch.path());
    for (const auto& [tap, rows] : calibration_rows(planted.source)) {
      if (tap.starts_with("in/")) {
        const auto sizes = at::linalg_svdvals(rows);
        EXPECT_LT((sizes[0] / sizes[-1]).item<double>(), 250) << tap;
      }
    }
  }
}

// T = U V^T of S^T R = U Sigma V^T, in the directions that the source's rows have.
at::Tensor procrustes(const at::Tensor& source, const at::Tensor& target) {
  const auto sizes = at::linalg_svdvals(source);
  const auto rank = sizes.gt(sizes[0] * 3e-6).sum().item<int64_t>();  // the rest is rounding
  const auto [u, sigma, v] = at::linalg_svd(source.t().matmul(target), false);
  return u.narrow(1, 0, rank).matmul(v.narrow(0, 0, rank));
}

// Of a layer that is not fused; null where its weight is not carried.
const Parameter* find_carried(const Architecture& architecture, const Linear& linear) {
  for (const auto& parameter : architecture.parameters) {
    if (parameter.name == linear.weight && parameter.role == Role::kWeight &&
        !is_fixed(linear.out.front())) {
      return &parameter;
    }
  }
  return nullptr;
}

void expect_recovered(const Planted& planted) {
  const Model models[] = {
      Model::open(planted.source), Model::open(planted.tuned), Model::open(planted.target),
      Model::open(planted.expected)};
  const auto s = calibration_rows(planted.source);
  const auto r = calibration_rows(planted.target);
  for (const auto& linear : models[0].architecture().linears) {
    const auto* parameter = find_carried(models[0].architecture(), linear);
    if (parameter == nullptr) {
      continue;
    }
    const auto value = [&](size_t i) {
      const auto stored = models[i].checkpoint().tensor(parameter->stored).to(at::kDouble);
      return linear.transposed ? stored.t() : stored;
    };
    const auto delta = value(1) - value(0);
    const auto& [in, out] = std::pair("in/" + linear.module, "out/" + linear.module);
    const auto t_in = procrustes(s.at(in), r.at(in));
    const auto t_out = procrustes(s.at(out), r.at(out));
    // Float32 activations, to 1e-6; the maps average over thousands of rows.
    EXPECT_LT(relative_error(t_out.t().matmul(delta).matmul(t_in), value(3) - value(2)), 2e-5)
        << linear.module;
  }
}

// What transport is tested for elsewhere can be had at all.
TEST(Planted, ProcrustesOnItsActivationsFindsWhatWasPlanted) {
  const c10::NoGradGuard no_gradients;
  for (const auto planting : {Planting::kPermuted, Planting::kWidened, Planting::kRotated}) {
    for (const auto& name : calibrated()) {
      const tests::ScratchDir scratch;
      SCOPED_TRACE(name);
      if (takes(family_of(tests::planted_case(name)), planting)) {
        expect_recovered(tests::plant(name, planting, scratch.path(), {.confine_mlp = true}));
      }
    }
  }
}

}  // namespace
}  // namespace theseus::model
