#include "theseus/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;

constexpr int64_t kSize = 4;

Preprocessing raw(int64_t size) {
  Preprocessing how;
  how.height = how.width = how.resize = size;
  how.scale = 1;
  how.mean = {0, 0, 0};
  how.std = {1, 1, 1};
  return how;
}

// Images of one value each: the example's number, modulo 256. Later ones are faster, so that threads
// finish out of order.
struct Fake {
  Examples examples;
  std::set<int64_t> corrupt;
  int64_t broken = -1;
  std::atomic<int64_t> read = 0;

  explicit Fake(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      examples.names.push_back("image " + std::to_string(i));
    }
    examples.image = [this](int64_t i) { return image(i); };
  }

  Image image(int64_t i) {
    ++read;
    std::this_thread::sleep_for(std::chrono::microseconds(300 * ((7 - i % 7) % 4)));
    if (i == broken) {
      throw std::runtime_error("the disk is gone");
    }
    require(corrupt.count(i) == 0, examples.names[i], ": cut short");
    return {at::full({kSize, kSize + 1, 3}, i % 256, at::kByte)};
  }
};

std::vector<int64_t> backwards(int64_t count) {
  std::vector<int64_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

struct Everything {
  std::vector<std::vector<int64_t>> batches;
  std::vector<std::string> skipped;
};

Everything load(const Fake& fake, int64_t batch_size, int threads) {
  ImageLoader loader(
      fake.examples, backwards(fake.examples.size()), {raw(kSize), raw(2)}, batch_size, threads);
  Everything all;
  while (const auto batch = loader.next()) {
    const auto count = static_cast<int64_t>(batch->examples.size());
    EXPECT_EQ(batch->views[0].sizes(), (std::vector<int64_t>{count, 3, kSize, kSize}));
    EXPECT_EQ(batch->views[1].sizes(), (std::vector<int64_t>{count, 3, 2, 2}));
    for (int64_t row = 0; row < count; ++row) {
      for (const auto& view : batch->views) {
        EXPECT_TRUE(view[row].eq(batch->examples[row] % 256).all().item<bool>());
      }
    }
    all.batches.push_back(batch->examples);
  }
  EXPECT_FALSE(loader.next().has_value());
  all.skipped = loader.skipped();
  return all;
}

TEST(ImageLoader, GivesTheOrderWithAnyNumberOfThreads) {
  const Fake fake(61);
  for (const int threads : {1, 2, 5, 80}) {
    for (const int64_t batch_size : {1, 8, 61, 100}) {
      SCOPED_TRACE(c10::str(threads, " threads, batches of ", batch_size));
      const auto all = load(fake, batch_size, threads);
      EXPECT_EQ(static_cast<int64_t>(all.batches.size()), (61 + batch_size - 1) / batch_size);
      std::vector<int64_t> found;
      for (const auto& batch : all.batches) {
        found.insert(found.end(), batch.begin(), batch.end());
      }
      EXPECT_EQ(found, backwards(61));
      EXPECT_TRUE(all.skipped.empty());
    }
  }
}

TEST(ImageLoader, LeavesOutWhatIsCorrupt) {
  Fake fake(400);
  fake.corrupt = {0, 5, 390, 391};  // just 1 in 100
  for (const int threads : {1, 3}) {
    const auto all = load(fake, 2, threads);
    // 391 and 390 were a whole batch.
    EXPECT_EQ(all.batches.size(), 199);
    EXPECT_EQ(all.batches[3], (std::vector<int64_t>{393, 392}));
    EXPECT_EQ(all.batches[4], (std::vector<int64_t>{389, 388}));
    EXPECT_EQ(all.batches[198], (std::vector<int64_t>{1}));
    EXPECT_EQ(
        all.skipped, (std::vector<std::string>{
                         "image 391: cut short", "image 390: cut short", "image 5: cut short",
                         "image 0: cut short"}));
  }
}

TEST(ImageLoader, TooManyCorruptAreAnErrorAtTheEnd) {
  Fake fake(40);
  fake.corrupt = {3};
  ImageLoader loader(fake.examples, backwards(40), {raw(2)}, 10, 2);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(loader.next().has_value());
  }
  EXPECT_EQ(loader.skipped().size(), 1);
  for (int i = 0; i < 2; ++i) {
    expect_parts(
        error_of([&] { loader.next(); }), "1 of 40 images cannot be read", "image 3: cut short");
  }
}

TEST(ImageLoader, OtherErrorsComeOutInTheirBatch) {
  Fake fake(40);
  fake.broken = 22;  // the 18th
  for (const int threads : {1, 4}) {
    ImageLoader loader(fake.examples, backwards(40), {raw(2)}, 10, threads);
    EXPECT_TRUE(loader.next().has_value());
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(error_of<std::runtime_error>([&] { loader.next(); }), "the disk is gone");
    }
  }
  fake.broken = 0;  // in the last batch: then, too, ever after
  ImageLoader loader(fake.examples, backwards(40), {raw(2)}, 40, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(error_of<std::runtime_error>([&] { loader.next(); }), "the disk is gone");
  }
}

TEST(ImageLoader, ReadsOnlySomeBatchesAhead) {
  Fake fake(1000);
  ImageLoader loader(fake.examples, backwards(1000), {raw(2)}, 10, 2);
  ASSERT_TRUE(loader.next().has_value());
  for (int i = 0; i < 500 && fake.read < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(fake.read, 40);  // one batch taken, three ahead
}

TEST(ImageLoader, EndsAtAnyTime) {
  Fake fake(300);
  fake.corrupt = {299, 280};
  fake.broken = 250;
  for (int taken = 0; taken < 10; ++taken) {
    ImageLoader loader(fake.examples, backwards(300), {raw(2)}, 7, 3);
    for (int i = 0; i < taken; ++i) {
      if (i < 7) {
        EXPECT_TRUE(loader.next().has_value());
      } else {  // 250 is the 50th
        EXPECT_THROW(loader.next(), std::runtime_error);
      }
    }
  }
}

TEST(ImageLoader, NothingToRead) {
  const Fake fake(5);
  ImageLoader loader(fake.examples, {}, {raw(2)}, 10, 4);
  EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.next().has_value());
}

TEST(ImageLoader, RefusesWhatCannotBe) {
  const Fake fake(5);
  EXPECT_THROW(ImageLoader(fake.examples, {5}, {raw(2)}, 1, 1), InternalError);
  EXPECT_THROW(ImageLoader(fake.examples, {0}, {}, 1, 1), InternalError);
  EXPECT_THROW(ImageLoader(fake.examples, {0}, {raw(2)}, 0, 1), InternalError);
  EXPECT_THROW(ImageLoader(fake.examples, {0}, {raw(2)}, 1, 0), InternalError);
  Examples texts;
  texts.names = {"a"};
  expect_parts(
      error_of([&] { ImageLoader(texts, {0}, {raw(2)}, 1, 1); }), "expected images", "text");
}

}  // namespace
}  // namespace theseus::data
