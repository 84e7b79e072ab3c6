// Every method in the table, on problems of every shape.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/method.h"

#include "tests/maps/random_matrix.h"
#include "tests/support/expect_error.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;

struct Widths {
  int64_t source;
  int64_t target;
};

constexpr Widths kWidths[] = {{24, 24}, {16, 24}, {24, 16}, {1, 1}, {1, 3}};

// Moments of `rows` random rows that share half of their directions.
Problem problem_of(Widths widths, int64_t rows) {
  const auto shared = gaussian(rows, std::min(widths.source, widths.target), 1);
  const auto view = [&](int64_t width, uint64_t seed) {
    return shared.matmul(gaussian(shared.size(1), width, seed)) + 0.3 * gaussian(rows, width, seed);
  };
  const auto source = view(widths.source, 2);
  const auto target = view(widths.target, 3);
  return {
      .source_width = widths.source,
      .target_width = widths.target,
      .rows = rows,
      .cross = source.t().matmul(target),
      .source_gram = source.t().matmul(source),
      .target_gram = target.t().matmul(target)};
}

// The same, as the image of smaller spaces.
Problem thin_problem() {
  auto problem = problem_of({9, 11}, 200);
  problem.source_width = 24;
  problem.target_width = 24;
  problem.source_basis = orthonormal(24, 9, 5);
  problem.target_basis = orthonormal(24, 11, 6);
  return problem;
}

// What the problem says without bases.
Problem expanded(const Problem& problem) {
  const auto& s = problem.source_basis;
  const auto& t = problem.target_basis;
  auto result = problem;
  result.cross = s.matmul(problem.cross).matmul(t.t());
  result.source_gram = s.matmul(problem.source_gram).matmul(s.t());
  result.target_gram = t.matmul(problem.target_gram).matmul(t.t());
  result.source_basis = at::Tensor();
  result.target_basis = at::Tensor();
  return result;
}

void expect_sound(const Problem& problem, const Map& map) {
  ASSERT_TRUE(map.matrix.defined());
  EXPECT_EQ(map.matrix.scalar_type(), at::kFloat);
  EXPECT_TRUE(map.matrix.is_contiguous());
  EXPECT_EQ(map.matrix.size(0), problem.source_width);
  EXPECT_EQ(map.matrix.size(1), problem.target_width);
  EXPECT_TRUE(at::isfinite(map.matrix).all().item<bool>());
  EXPECT_FALSE(map.route.empty());
  EXPECT_GT(map.rank, 0);
  EXPECT_GE(map.condition, 1);
  EXPECT_LT(map.asymmetry, 1e-6);
  if (map.isometry) {
    EXPECT_LT(orthogonality(map.matrix), 1e-6);
    EXPECT_LT(map.orthogonality, 1e-6);
  }
}

class EveryMethod : public testing::TestWithParam<Plugin<Method>> {
 protected:
  static const Method& method() { return *GetParam().object; }
  static bool takes(Widths widths) {
    return !method().same_widths || widths.source == widths.target;
  }
};

TEST_P(EveryMethod, HasASoundMapForEveryShapeAndPolicy) {
  for (const auto widths : kWidths) {
    for (const auto rank : {Rank::kComplete, Rank::kArbitrary, Rank::kTruncate}) {
      for (const int64_t rows : {100, 7}) {  // the second: fewer rows than units
        SCOPED_TRACE(testing::Message() << widths.source << " x " << widths.target << ", " << rows);
        const auto problem = problem_of(widths, rows);
        if (takes(widths)) {
          expect_sound(problem, method().solve(problem, {.rank = rank}));
        } else {
          tests::expect_parts(
              tests::error_of([&] { method().solve(problem, {.rank = rank}); }), "equal widths",
              "procrustes");
        }
      }
    }
  }
}

TEST_P(EveryMethod, IsTheSameEveryTime) {
  const auto problem = problem_of({24, 24}, 100);
  EXPECT_TRUE(at::equal(method().solve(problem, {}).matrix, method().solve(problem, {}).matrix));
}

TEST_P(EveryMethod, DoesNotDependOnHowTheSpaceIsWritten) {
  const auto thin = thin_problem();
  const auto map = method().solve(thin, {});
  expect_sound(thin, map);
  EXPECT_LT(distance(map.matrix, method().solve(expanded(thin), {}).matrix), 2e-6);
}

TEST_P(EveryMethod, RefusesWhatIsNotFinite) {
  const auto& needs = method().needs;
  if (!needs.moments && !needs.weight_cross && !needs.weight_grams) {
    return;
  }
  auto problem = problem_of({24, 24}, 100);
  for (auto* tensor : {&problem.cross, &problem.source_gram, &problem.target_gram}) {
    tensor->select(0, 3).select(0, 4).fill_(std::numeric_limits<double>::quiet_NaN());
  }
  tests::expect_parts(
      tests::error_of<NumericError>([&] { method().solve(problem, {}); }), "not finite");
}

TEST_P(EveryMethod, RefusesZeros) {
  const auto& needs = method().needs;
  if (!needs.moments && !needs.weight_cross && !needs.weight_grams) {
    return;
  }
  auto problem = problem_of({24, 24}, 100);
  for (auto* tensor : {&problem.cross, &problem.source_gram, &problem.target_gram}) {
    tensor->zero_();
  }
  tests::expect_parts(tests::error_of<NumericError>([&] { method().solve(problem, {}); }), "zero");
}

TEST_P(EveryMethod, SaysWhatIsMissing) {
  const auto& needs = method().needs;
  const Problem bare = {.source_width = 4, .target_width = 4};
  if (!needs.moments && !needs.weight_cross && !needs.weight_grams) {
    expect_sound(bare, method().solve(bare, {}));
    return;
  }
  tests::expect_parts(
      tests::error_of([&] { method().solve(bare, {}); }), "needs", "was not collected");
}

TEST_P(EveryMethod, IsFoundByItsWord) {
  std::string word(GetParam().name);
  std::replace(word.begin(), word.end(), '_', '-');
  EXPECT_EQ(&maps::method(word), &method());
  const auto words = method_words();
  EXPECT_NE(std::find(words.begin(), words.end(), word), words.end());
  EXPECT_FALSE(method().summary.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Methods,
    EveryMethod,
    testing::ValuesIn(all_methods().begin(), all_methods().end()),
    [](const testing::TestParamInfo<Plugin<Method>>& info) {
      return std::string(info.param.name);
    });

TEST(MethodTable, NamesWhatItHas) {
  tests::expect_parts(
      tests::error_of([] { method("procustes"); }), "procustes", " pinv-tikhonov", " procrustes");
}

}  // namespace
}  // namespace theseus::maps
