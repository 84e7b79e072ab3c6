#include "theseus/stats/moments.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job.h"

namespace theseus::stats {
namespace {

constexpr Grams kBoth = {.source = true, .target = true};

at::Tensor rows(int64_t count, int64_t width, uint64_t seed, double mean = 0.5) {
  return at::randn({count, width}, at::detail::createCPUGenerator(seed), at::kFloat) + mean;
}

void expect_same(const PairMoments& found, const PairMoments& expected, double tolerance) {
  EXPECT_EQ(found.rows, expected.rows);
  const auto left = found.tensors(), right = expected.tensors();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].first, right[i].first);
    EXPECT_LE(tests::frobenius_error(left[i].second.to(at::kDouble), right[i].second), tolerance)
        << left[i].first;
  }
}

PairMoments moments_of(const at::Tensor& source, const at::Tensor& target, Grams grams = kBoth) {
  PairMoments moments;
  moments.add(source, target, grams);
  return moments;
}

TEST(PairMoments, AreTheSumsTheyAreNamedAfter) {
  const auto s = rows(9, 3, 1), r = rows(9, 5, 2);
  const auto moments = moments_of(s, r);
  const auto ds = s.to(at::kDouble), dr = r.to(at::kDouble);
  EXPECT_EQ(moments.rows, 9);
  // Float64 sums of nine numbers.
  EXPECT_LT(tests::frobenius_error(moments.cross, ds.t().matmul(dr)), 1e-14);
  EXPECT_LT(tests::frobenius_error(moments.source_gram, ds.t().matmul(ds)), 1e-14);
  EXPECT_LT(tests::frobenius_error(moments.target_gram, dr.t().matmul(dr)), 1e-14);
  EXPECT_LT(tests::frobenius_error(moments.source_sum, ds.sum(0)), 1e-14);
  EXPECT_LT(tests::frobenius_error(moments.target_sum, dr.sum(0)), 1e-14);
  EXPECT_FALSE(moments_of(s, r, {}).source_gram.defined());
}

TEST(PairMoments, OfRowsThatAreKeptAreTheirProducts) {
  const auto s = rows(20, 6, 1), r = rows(20, 4, 2);
  PairMoments kept;
  kept.keep(s.narrow(0, 0, 7), r.narrow(0, 0, 7), 5);
  kept.keep(s.narrow(0, 7, 13), r.narrow(0, 7, 13));
  EXPECT_TRUE(kept.keeps_rows());
  EXPECT_FALSE(kept.cross.defined());
  EXPECT_EQ(kept.rows, 20);
  EXPECT_EQ(kept.distinct, 18);
  EXPECT_TRUE(at::equal(kept.kept().first, s));
  EXPECT_TRUE(at::equal(kept.kept().second, r));
  PairMoments products;
  products.add(s, r, kBoth, 18);
  expect_same(kept.multiplied(kBoth), products, 0);
  std::map<std::string, at::Tensor> file;
  for (const auto& [name, tensor] : kept.tensors()) {
    file[name] = tensor;
  }
  expect_same(PairMoments::from(file), kept, 0);
  file.erase("target_rows");
  tests::expect_parts(tests::error_of([&] { PairMoments::from(file); }), "not moments");
  // Centred rows have the centred moments; about a mean of 0.5 that takes one digit.
  const auto centred = kept.centred().kept();
  EXPECT_LT(
      tests::frobenius_error(
          centred.first.t().matmul(centred.second), moments_of(s, r).centred().cross),
      1e-13);
}

TEST(PairMoments, DoNotDependOnBatchesOrOrder) {
  const auto s = rows(100, 6, 1), r = rows(100, 4, 2);
  const auto whole = moments_of(s, r);
  PairMoments batches, backwards;
  for (int64_t first = 0; first < 100; first += 7) {
    const auto count = std::min<int64_t>(7, 100 - first);
    const auto left = s.narrow(0, first, count), right = r.narrow(0, first, count);
    batches.add(left, right, kBoth);
  }
  backwards.add(s.flip(0), r.flip(0), kBoth);
  for (const auto& other : {batches, backwards}) {
    expect_same(other, whole, 1e-14);  // float64 sums in another order
  }
}

TEST(PairMoments, CentredAreThoseOfRowsLessTheirMeans) {
  const auto s = rows(50, 6, 1, 3).to(at::kDouble), r = rows(50, 4, 2, -2).to(at::kDouble);
  const auto centred = moments_of(s, r).centred();
  const auto expected = moments_of(s - s.mean(0, true), r - r.mean(0, true));
  EXPECT_EQ(centred.rows, 50);
  // The means' part, up to ten times as large, is taken out of float64 sums.
  EXPECT_LT(tests::frobenius_error(centred.cross, expected.cross), 1e-12);
  EXPECT_LT(tests::frobenius_error(centred.source_gram, expected.source_gram), 1e-12);
  EXPECT_LT(tests::frobenius_error(centred.target_gram, expected.target_gram), 1e-12);
  EXPECT_EQ(centred.source_sum.abs().max().item<double>(), 0);
}

TEST(PairMoments, ComeBackFromTheirTensorsBitForBit) {
  for (const auto grams : {Grams{}, kBoth}) {
    const auto moments = moments_of(rows(9, 3, 1), rows(9, 5, 2), grams);
    std::map<std::string, at::Tensor> tensors;
    for (const auto& [name, tensor] : moments.tensors()) {
      tensors[name] = tensor;
    }
    expect_same(PairMoments::from(tensors), moments, 0);
    tensors.erase("cross");
    tests::expect_parts(
        tests::error_of([&] { PairMoments::from(tensors); }), "not moments of paired rows");
  }
}

TEST(PairMoments, RefuseRowsThatDoNotPair) {
  PairMoments moments;
  tests::expect_parts(
      tests::error_of<InternalError>([&] { moments.add(rows(3, 2, 1), rows(4, 2, 1)); }), "[3, 2]",
      "[4, 2]");
  tests::error_of<InternalError>([&] { moments.add(rows(0, 2, 1), rows(0, 2, 1)); });
  for (const double bad : {NAN, INFINITY}) {
    auto broken = rows(3, 2, 1);
    broken[1][1] = bad;
    tests::expect_parts(
        tests::error_of<NumericError>([&] { moments_of(rows(3, 2, 1), broken); }), "NaN");
    tests::error_of<NumericError>([&] { moments_of(broken, rows(3, 2, 1)); });
  }
}

TEST(PairMoments, TakeWidthsOnceAndForAll) {
  auto moments = moments_of(rows(3, 2, 1), rows(3, 4, 2));
  tests::error_of<InternalError>([&] { moments.add(rows(3, 3, 1), rows(3, 4, 2), kBoth); });
  tests::error_of<InternalError>([&] { moments.add(rows(3, 2, 1), rows(3, 1, 2), kBoth); });
}

// Of float32 products, 4096 rows at a time: 5000 rows are two pieces. As a share of the largest singular
// value.
double error_of_product(const at::Tensor& s, const at::Tensor& r) {
  const auto exact = at::mm(s.to(at::kDouble).t(), r.to(at::kDouble));
  const auto found = product_of_rows(s, r);
  EXPECT_EQ(found.scalar_type(), at::kDouble);
  const auto largest = at::linalg_matrix_norm(exact, 2).item<double>();
  return at::linalg_matrix_norm(found - exact, 2).item<double>() / largest;
}

TEST(ProductOfRows, IsExactToFloat32) {
  constexpr int64_t kRows = 5000;
  constexpr int64_t kWidth = 1030;
  const auto with_means = error_of_product(rows(kRows, kWidth, 1), rows(kRows, kWidth, 2));
  EXPECT_GT(with_means, 0) << "not the float32 path";
  EXPECT_LT(with_means, 1e-8);  // measured 5e-9
  // All directions alike is the worst: errors add up, and no direction is larger.
  const auto s = rows(kRows, kWidth, 1, 0);
  EXPECT_LT(error_of_product(s, s + rows(kRows, kWidth, 3, 0)), 5e-7);  // measured 1.9e-7
}

}  // namespace
}  // namespace theseus::stats
