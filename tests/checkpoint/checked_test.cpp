#include "theseus/checkpoint/checked.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"

#include "tests/support/scratch_dir.h"

namespace theseus::checkpoint {
namespace {

TEST(Checked, HoldsWhatWasWritten) {
  const tests::ScratchDir scratch;
  const auto path = scratch / "work.safetensors";
  const auto values = at::arange(6, at::kFloat).view({2, 3}).t();  // not contiguous
  write_checked(
      path, {{"b", values}, {"a", at::tensor({1, 2}, at::kByte)}, {"zz", at::empty({0})}});
  const auto file = open_checked(path);
  EXPECT_EQ(file.tensors().size(), 3U);
  EXPECT_TRUE(at::equal(file.tensor("b"), values));
  EXPECT_TRUE(at::equal(file.tensor("a"), at::tensor({1, 2}, at::kByte)));
}

// Behind the header every byte counts; of the header's own only what says something.
TEST(Checked, EveryFlippedByteIsRefused) {
  const tests::ScratchDir scratch;
  const auto path = scratch / "work.safetensors";
  write_checked(
      path, {{"first", at::ones({3}, at::kDouble)}, {"second", at::zeros({2}, at::kLong)}});
  const auto whole = tests::read_bytes(path);
  const auto header = whole.find("\"first\"");
  for (auto place = header; place < whole.size(); ++place) {
    auto damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    tests::write_bytes(path, damaged);
    EXPECT_THROW(open_checked(path), InputError) << "byte " << place;
  }
  for (const size_t size : {size_t{0}, header, whole.size() - 1}) {
    tests::write_bytes(path, whole.substr(0, size));
    EXPECT_THROW(open_checked(path), InputError) << size << " bytes";
  }
}

TEST(Checked, AFileWithoutAChecksumIsRefused) {
  const tests::ScratchDir scratch;
  write_safetensors(scratch / "plain.safetensors", {{"a", at::ones({3})}});
  EXPECT_THROW(open_checked(scratch / "plain.safetensors"), InputError);
}

}  // namespace
}  // namespace theseus::checkpoint
