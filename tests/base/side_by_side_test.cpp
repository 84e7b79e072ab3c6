#include "theseus/base/side_by_side.h"

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

namespace theseus {
namespace {

std::vector<c10::Device> devices() {
  std::vector<c10::Device> result = {c10::Device(c10::kCPU)};
  if (torch::cuda::is_available()) {
    result.emplace_back(c10::kCUDA, 0);
  }
  return result;
}

TEST(SideBySide, RunsEveryTaskOnce) {
  for (const auto device : devices()) {
    const auto given = at::arange(1 << 16, at::TensorOptions(device).dtype(at::kDouble));
    std::vector<at::Tensor> sums(40);
    std::vector<std::function<void()>> tasks;
    for (size_t i = 0; i < sums.size(); ++i) {
      tasks.emplace_back([&, i] {
        ASSERT_FALSE(sums[i].defined());
        const auto one = at::linalg_cholesky(at::ones({1, 1}, given.options()));
        sums[i] = (one * given * static_cast<double>(i)).sum();
      });
    }
    run_side_by_side(device, tasks);
    const auto all = given.sum().item<double>();
    for (size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(sums[i].item<double>(), all * static_cast<double>(i)) << device;
    }
  }
}

TEST(SideBySide, ThrowsWhatATaskThrew) {
  for (const auto device : devices()) {
    const std::vector<std::function<void()>> tasks = {
        [] {}, [] { throw std::invalid_argument("this one"); }, [] {}};
    EXPECT_THROW(run_side_by_side(device, tasks), std::invalid_argument) << device;
  }
}

// As maps are solved: from work that goes on beside, in tasks that wait for earlier ones, and give work on.
TEST(SideBySide, TasksMayWaitForEarlierOnesAndForOthers) {
  for (const auto device : devices()) {
    std::vector<std::promise<int>> promises(30);
    std::vector<std::shared_future<int>> futures;
    std::vector<std::function<void()>> tasks;
    for (size_t i = 0; i < promises.size(); ++i) {
      futures.push_back(promises[i].get_future().share());
      tasks.emplace_back([&, i] { promises[i].set_value(i == 0 ? 1 : futures[i / 2].get() + 1); });
    }
    std::vector<int> handed;
    Aside handover(device), solving(device);
    solving.warm_up([] {});
    solving.run([&] {
      run_side_by_side(device, tasks);
      handover.run([&] { handed.push_back(futures.back().get()); });
    });
    solving.wait();
    handover.wait();
    EXPECT_EQ(handed, std::vector<int>{6}) << device;  // 29, 14, 7, 3, 1, 0
  }
}

// As groups are solved, handed over and stored.
TEST(Aside, NothingOfAWorkIsBegunAfterAFailure) {
  if (!torch::cuda::is_available()) {
    GTEST_SKIP() << "on a CPU nothing waits";
  }
  const c10::Device device(c10::kCUDA, 0);
  std::promise<void> go;
  int begun = 0;
  Aside storing(device), solving(device, /*waiting=*/2, storing);
  solving.run([&] { go.get_future().wait(); });
  solving.run([&] { ++begun; });
  EXPECT_ANY_THROW({
    storing.run([] { throw std::invalid_argument("no space"); });
    storing.wait();
  });
  go.set_value();
  EXPECT_THROW(solving.run([&] { ++begun; }), std::invalid_argument);
  EXPECT_THROW(solving.wait(), std::invalid_argument);
  EXPECT_EQ(begun, 0);
}

TEST(Aside, WhatWaitsIsNotBegunWhenItEndsEarly) {
  if (!torch::cuda::is_available()) {
    GTEST_SKIP() << "on a CPU nothing waits";
  }
  std::promise<void> go;
  int begun = 0;
  std::thread later;
  {
    Aside aside(c10::Device(c10::kCUDA, 0), /*waiting=*/2);
    aside.run([&] { go.get_future().wait(); });
    aside.run([&] { ++begun; });
    later = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      go.set_value();
    });
  }
  later.join();
  EXPECT_EQ(begun, 0);
}

TEST(Aside, RunsTasksInOrderAndThrowsWhenAskedNext) {
  for (const auto device : devices()) {
    std::vector<int> order;
    Aside aside(device);
    for (int i = 0; i < 5; ++i) {
      aside.run([&order, i] { order.push_back(i); });
    }
    aside.wait();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4})) << device;
    EXPECT_THROW(
        {
          aside.run([] { throw std::invalid_argument("this one"); });
          aside.wait();
        },
        std::invalid_argument)
        << device;
    aside.run([&order] { order.clear(); });
    aside.wait();
    EXPECT_TRUE(order.empty()) << device;
  }
}

TEST(Aside, TasksThatWaitRunInOrderAndNotAfterAFailure) {
  for (const auto device : devices()) {
    std::vector<int> order;
    Aside aside(device, /*waiting=*/2);
    for (int i = 0; i < 9; ++i) {
      aside.run([&order, i] { order.push_back(i); });
    }
    aside.wait();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8})) << device;
    order.clear();
    EXPECT_THROW(
        {
          aside.run([] { throw std::invalid_argument("this one"); });
          aside.run([&order] { order.push_back(1); });
          aside.wait();
        },
        std::invalid_argument)
        << device;
    EXPECT_TRUE(order.empty()) << device;
  }
}

}  // namespace
}  // namespace theseus
