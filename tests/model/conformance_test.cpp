// What every family must keep. A new family is covered once it has a case below.

#include <algorithm>
#include <map>
#include <set>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/model/golden.h"
#include "theseus/model/model.h"

#include "tests/support/cases.h"
#include "tests/support/openclip_case.h"

namespace theseus::model {
namespace {

struct Subject {
  std::string family;
  Model model;
  Batch batch;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const auto& [family, name] : std::map<std::string, std::string>{
           {"bert", "bert_bare"},
           {"clip", "clip_legacy_end"},
           {"llama", "qwen3_bias"},
           {"t5", "t5_own_head"},
           {"timm_vit", "timm_headless"},
           {"vit", "vit_bare"}}) {
    all.push_back({family, tests::open_case(name), tests::case_inputs(name)});
  }
  static const tests::OpenClipCase openclip;
  all.push_back({"openclip", Model::open(openclip.path()), openclip.inputs()});
  return all;
}

class EveryFamily : public testing::Test {
 protected:
  // Runs `check` on a subject of each family, and fails when a family has none.
  template <class Check>
  void each(const Check& check) {
    const c10::NoGradGuard no_gradients;
    std::set<std::string_view> missing;
    for (const auto& plugin : all_families()) {
      missing.insert(plugin.name);
    }
    for (auto& subject : subjects()) {
      SCOPED_TRACE(subject.family);
      EXPECT_EQ(subject.model.location().family, subject.family);
      missing.erase(subject.family);
      check(subject);
    }
    EXPECT_TRUE(missing.empty()) << "no case for " << *missing.begin();
  }
};

class CountingTaps final : public Taps {
 public:
  void linear(
      const std::string& module, const at::Tensor& input, const at::Tensor& output) override {
    widths[module] = {input.size(-1), output.size(-1)};
  }
  std::map<std::string, std::pair<int64_t, int64_t>> widths;
};

TEST_F(EveryFamily, GivesEachSpaceOneWidth) {
  each([](const Subject& subject) {
    std::map<std::string, int64_t> widths;
    for (const auto& parameter : subject.model.architecture().parameters) {
      ASSERT_EQ(parameter.axes.size(), parameter.shape.size()) << parameter.name;
      for (size_t i = 0; i < parameter.axes.size(); ++i) {
        if (is_fixed(parameter.axes[i])) {
          continue;
        }
        const auto [at, fresh] = widths.try_emplace(parameter.axes[i], parameter.shape[i]);
        EXPECT_EQ(at->second, parameter.shape[i]) << parameter.name << " " << parameter.axes[i];
      }
    }
    EXPECT_GT(widths.size(), 10U);
  });
}

TEST_F(EveryFamily, TapsEveryMatrixInTheSpacesItDeclares) {
  each([](Subject& subject) {
    CountingTaps taps;
    subject.model.forward(subject.batch, &taps);
    std::map<std::string, int64_t> outputs;  // of the tensor, all parts together
    for (const auto& parameter : subject.model.architecture().parameters) {
      outputs[parameter.tensor] += parameter.shape.empty() ? 0 : parameter.shape[0];
    }
    int64_t matrices = 0;
    for (const auto& parameter : subject.model.architecture().parameters) {
      const bool matrix = parameter.shape.size() == 2 && !is_fixed(parameter.axes[1]) &&
                          (!is_fixed(parameter.axes[0]) || parameter.axes[0] == "<class>");
      if (!matrix) {
        continue;
      }
      auto module = parameter.tensor;
      for (const std::string_view ending : {".weight", "_weight"}) {
        if (module.ends_with(ending)) {
          module.resize(module.size() - ending.size());
        }
      }
      const auto seen = taps.widths.find(module);
      ASSERT_NE(seen, taps.widths.end()) << module;
      const bool transposed = !parameter.tensor.ends_with("weight");  // CLIP's projections
      const auto in = transposed ? parameter.shape[0] : parameter.shape[1];
      EXPECT_EQ(seen->second.first, in) << module;
      EXPECT_EQ(seen->second.second, transposed ? parameter.shape[1] : outputs[parameter.tensor])
          << module;
      ++matrices;
    }
    EXPECT_GE(matrices, 6 * subject.model.architecture().blocks());
  });
}

TEST_F(EveryFamily, ComputesTheSameWhenBlocksAreDropped) {
  each([](Subject& subject) {
    const auto kept = subject.model.forward(subject.batch);
    subject.model.set_walk(true);
    for (int i = 0; i < 2; ++i) {
      for (const auto& [name, tensor] : subject.model.forward(subject.batch)) {
        EXPECT_TRUE(at::equal(tensor, kept.at(name))) << name;
      }
    }
  });
}

// Grouping must not depend on how many sequences another tower has, nor mix them up.
TEST_F(EveryFamily, ComputesTheSameInGroupsOfSequences) {
  each([](Subject& subject) {
    for (const auto& [longer, rows] :
         {std::pair("", 3), {"pixel_values", 1}, {"pixel_values", 5}}) {
      auto batch = subject.batch;
      if (batch.contains(longer)) {
        batch[longer] = at::cat({batch[longer], batch[longer]}, 0).narrow(0, 0, rows);
      }
      subject.model.set_group(1000);
      const auto whole = subject.model.forward(batch);
      for (const int64_t group : {1, 2}) {
        subject.model.set_group(group);
        RecordingTaps taps;
        const auto grouped = subject.model.forward(batch, &taps);
        for (const auto& [name, tensor] : grouped) {
          EXPECT_EQ(tensor.sizes(), whole.at(name).sizes()) << name;
          EXPECT_LT(relative_error(tensor, whole.at(name)), 1e-5) << name << " by " << group;
        }
      }
    }
  });
}

TEST_F(EveryFamily, ComputesRowsIndependently) {
  each([](Subject& subject) {
    auto first = subject.batch;
    for (auto& [name, tensor] : first) {
      tensor = tensor.narrow(0, 0, 1);
    }
    const auto whole = subject.model.forward(subject.batch);
    for (const auto& [name, tensor] : subject.model.forward(first)) {
      if (!name.starts_with("logits_per_")) {
        EXPECT_LT(relative_error(tensor, whole.at(name).narrow(0, 0, 1)), 1e-5) << name;
      }
    }
  });
}

TEST_F(EveryFamily, BlocksOwnEveryParameterBetweenTheOuterOnes) {
  each([](const Subject& subject) {
    std::set<int64_t> owners;
    for (const auto& parameter : subject.model.architecture().parameters) {
      owners.insert(parameter.block);
    }
    const auto blocks = subject.model.architecture().blocks();
    EXPECT_EQ(*owners.begin(), kOuter);
    EXPECT_EQ(*owners.rbegin(), blocks - 1);
    EXPECT_EQ(static_cast<int64_t>(owners.size()), blocks + 1);
  });
}

TEST_F(EveryFamily, RunsInBfloat16CloseToFloat32) {
  each([](Subject& subject) {
    const auto wide = subject.model.forward(subject.batch);
    auto narrow_model =
        Model::open(subject.model.location().weights, {.placement = {.dtype = at::kBFloat16}});
    for (const auto& [name, tensor] : narrow_model.forward(subject.batch)) {
      EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << name;
      // 8 bits of mantissa through a few blocks of random weights.
      EXPECT_LT(relative_error(tensor, wide.at(name)), 0.2) << name;
    }
  });
}

}  // namespace
}  // namespace theseus::model
