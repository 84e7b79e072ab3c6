#include "theseus/transport/plan.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/transport/depth.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::transport {
namespace {

using model::Role;
using tests::Changes;
using tests::Planting;

std::set<std::string> towers_of(const model::Model& model) {
  std::set<std::string> towers;
  for (const auto& tower : model.architecture().towers) {
    towers.insert(tower.name);
  }
  return towers;
}

std::vector<Disposition> plan_of(
    const model::Model& source, const model::Model& target, PlanOptions options = {}) {
  if (options.towers.empty()) {
    options.towers = towers_of(target);
  }
  return make_plan(
      source, target, make_route(source.architecture(), target.architecture(), Depth::kDivided, {}),
      options);
}

const Disposition& row_of(const std::vector<Disposition>& plan, std::string_view name) {
  const auto found = std::find_if(
      plan.begin(), plan.end(), [&](const auto& row) { return row.target->name == name; });
  EXPECT_NE(found, plan.end()) << name;
  return *found;
}

// Runs `check` on every case of every family, beside its widened twin.
template <class Check>
void each(const Check& check) {
  for (const auto& name : tests::planted_cases()) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted =
        tests::plant(name, Planting::kWidened, scratch.path(), {.changes = Changes::kAll});
    const auto source = model::Model::open(planted.source);
    const auto target = model::Model::open(planted.target);
    check(source, target, SourceUpdate::open(planted.tuned, source));
  }
}

TEST(Plan, HasAReasonForEveryParameter) {
  each([](const auto& source, const auto& target, const auto&) {
    const auto plan = plan_of(source, target);
    const auto& parameters = target.architecture().parameters;
    ASSERT_EQ(plan.size(), parameters.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      const auto& row = plan[i];
      EXPECT_EQ(row.target, &parameters[i]);
      EXPECT_FALSE(row.reason.empty()) << row.target->name;
      ASSERT_NE(row.source, nullptr) << row.target->name;
      const bool fixed =
          std::any_of(row.target->axes.begin(), row.target->axes.end(), model::is_fixed);
      const bool gain = row.target->role == Role::kGain;
      EXPECT_EQ(row.carried, row.target->role != Role::kTable && (!fixed || gain))
          << row.target->name << ": " << row.reason;
      EXPECT_EQ(row.diagonal, gain && !fixed) << row.target->name;
      EXPECT_TRUE(!row.diagonal || row.maps.size() == 2) << row.target->name;
    }
  });
}

TEST(Plan, CarriesWhatFineTuningChangesAndNothingElse) {
  each([](const auto& source, const auto& target, const auto& update) {
    auto plan = plan_of(source, target);
    const auto route =
        make_route(source.architecture(), target.architecture(), Depth::kDivided, {});
    leave_unchanged(plan, update, source.architecture(), route);
    int64_t carried = 0;
    for (const auto& row : plan) {
      EXPECT_EQ(row.carried, update.changes(*row.source)) << row.target->name;
      EXPECT_FALSE(row.reason.empty());
      carried += row.carried ? 1 : 0;
    }
    EXPECT_GE(carried, 6 * target.architecture().blocks());
  });
}

TEST(Plan, NamesEverySpaceOfWhatIsCarriedAndNoOther) {
  each([](const auto& source, const auto& target, const auto&) {
    const auto plan = plan_of(source, target, {.norms = Norms::kRotate, .heads = true});
    const auto spaces = spaces_of(plan);
    SpaceSet expected;
    for (const auto& row : plan) {
      for (const auto& space : row.target->axes) {
        if (row.carried && !model::is_fixed(space)) {
          expected.insert(space);
        }
      }
    }
    EXPECT_EQ(spaces, expected);
    for (const auto& space : spaces) {
      EXPECT_TRUE(target.architecture().spaces.contains(space)) << space;
    }
  });
}

TEST(Plan, CarriesHeadsAndNormsWhenToldTo) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("adapted_llama", Planting::kWidened, scratch.path());
  const auto source = model::Model::open(planted.source);
  const auto target = model::Model::open(planted.target);
  const std::string norm = "model.layers.0.input_layernorm.weight";
  const auto plain = plan_of(source, target);
  tests::expect_parts(row_of(plain, "lm_head.weight").reason, "head", "--head carry");
  tests::expect_parts(row_of(plain, norm).reason, "diagonal");
  const auto changed = plan_of(source, target, {.norms = Norms::kSkip, .heads = true});
  EXPECT_TRUE(row_of(changed, "lm_head.weight").carried);
  EXPECT_FALSE(row_of(changed, norm).carried);
  tests::expect_parts(row_of(changed, norm).reason, "--norms skip");
  EXPECT_FALSE(row_of(plan_of(source, target, {.norms = Norms::kRotate}), norm).diagonal);
  tests::expect_parts(row_of(plain, "model.embed_tokens.weight").reason, "embedding");
}

TEST(Plan, SaysWhichHeadsHaveOtherSizes) {
  const auto source = tests::open_case("adapted_llama");
  const auto target = tests::open_case("mistral");
  const auto plan = plan_of(source, target, {.heads = true});
  const auto& head = row_of(plan, "lm_head.weight");
  const bool same = head.target->shape[0] == head.source->shape[0];
  EXPECT_EQ(head.carried, same);
  EXPECT_TRUE(same || head.reason.find("<vocab> differs") != std::string::npos) << head.reason;
}

TEST(Plan, LeavesATowerThatTheCalibrationDoesNotReach) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("openclip", Planting::kWidened, scratch.path());
  const auto source = model::Model::open(planted.source);
  const auto target = model::Model::open(planted.target);
  const auto plan = plan_of(source, target, {.towers = {"visual"}});
  for (const auto& row : plan) {
    const bool text = std::any_of(row.target->axes.begin(), row.target->axes.end(), [](auto& s) {
      return s.starts_with("text.");
    });
    EXPECT_FALSE(text && row.carried) << row.target->name;
  }
  EXPECT_TRUE(row_of(plan, "visual.proj").carried);
  const auto message = tests::error_of([&] {
    require_reached(plan, SourceUpdate::open(planted.tuned, source), source.architecture());
  });
  tests::expect_parts(message, "do not reach", "pixel_values", "text", "--partial");
}

}  // namespace
}  // namespace theseus::transport
