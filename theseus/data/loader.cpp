#include "theseus/data/loader.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::data {
namespace {

// Batches that are being filled or wait, besides what keeps every thread busy.
constexpr int64_t kBatchesAhead = 3;

// How reading one image went: well when both are empty.
struct Outcome {
  std::string problem;
  std::exception_ptr error;
};

// A batch that threads fill, each its own rows.
struct Slot {
  std::vector<at::Tensor> views;
  std::vector<Outcome> outcomes;
  int64_t left = 0;
};

struct Job {
  std::shared_ptr<Slot> slot;
  int64_t position = 0;  // in the order
  int64_t row = 0;       // in the slot
};

void write_row(const Image& image, const Preprocessing& how, const at::Tensor& view, int64_t row) {
  const auto size = 3 * how.height * how.width;
  preprocess(image, how, {view.data_ptr<float>() + row * size, static_cast<size_t>(size)});
}

}  // namespace

struct ImageLoader::State {
  const Examples& examples;
  const std::vector<int64_t> order;
  const std::vector<Preprocessing> views;
  const int64_t batch_size;
  const int64_t ahead;  // batches

  std::mutex mutex;  // guards all down to the threads
  std::condition_variable room;
  std::condition_variable ready;
  bool stopping = false;
  int64_t claimed = 0;                      // positions of the order that a thread has taken
  int64_t given = 0;                        // batches that next() has taken
  std::deque<std::shared_ptr<Slot>> slots;  // from batch `given` on
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  std::vector<std::string> skipped;  // only next() writes it

  State(
      const Examples& all,
      std::vector<int64_t> wanted,
      std::vector<Preprocessing> hows,
      int64_t size,
      int thread_count)
      : examples(all),
        order(std::move(wanted)),
        views(std::move(hows)),
        batch_size(size),
        ahead(kBatchesAhead + 2 * thread_count / size) {}

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    room.notify_all();
    for (auto& thread : threads) {
      thread.join();
    }
  }

  int64_t size() const { return static_cast<int64_t>(order.size()); }

  std::shared_ptr<Slot> new_slot(int64_t begin) const {
    auto slot = std::make_shared<Slot>();
    slot->left = std::min(batch_size, size() - begin);
    slot->outcomes.resize(static_cast<size_t>(slot->left));
    for (const auto& how : views) {
      slot->views.push_back(at::empty({slot->left, 3, how.height, how.width}, at::kFloat));
    }
    return slot;
  }

  // The next image in order, once there is room for its batch; nothing when all are taken.
  std::optional<Job> claim() {
    std::unique_lock lock(mutex);
    room.wait(lock, [&] {
      return stopping || failure || claimed == size() || claimed / batch_size < given + ahead;
    });
    if (stopping || failure || claimed == size()) {
      return std::nullopt;
    }
    const int64_t batch = claimed / batch_size - given;
    if (batch == static_cast<int64_t>(slots.size())) {
      slots.push_back(new_slot(claimed));
    }
    const int64_t position = claimed++;
    return Job{slots[static_cast<size_t>(batch)], position, position % batch_size};
  }

  Outcome read(const Job& job) const {
    Image image;
    try {
      image = examples.image(order[static_cast<size_t>(job.position)]);
    } catch (const InputError& error) {
      return {error.what(), nullptr};
    }
    for (size_t i = 0; i < views.size(); ++i) {
      write_row(image, views[i], job.slot->views[i], job.row);
    }
    return {};
  }

  void finish(const Job& job, Outcome outcome) {
    const std::lock_guard lock(mutex);
    job.slot->outcomes[static_cast<size_t>(job.row)] = std::move(outcome);
    if (--job.slot->left == 0) {
      ready.notify_all();
    }
  }

  void work() {
    try {
      while (const auto job = claim()) {
        Outcome outcome;
        try {
          outcome = read(*job);
        } catch (...) {
          outcome.error = std::current_exception();
        }
        finish(*job, std::move(outcome));
      }
    } catch (...) {  // no memory for a batch
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      room.notify_all();
      ready.notify_all();
    }
  }

  // The next slot when all of it is there.
  std::shared_ptr<Slot> take() {
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return failure || (!slots.empty() && slots.front()->left == 0); });
    if (failure) {
      std::rethrow_exception(failure);
    }
    auto slot = slots.front();
    slots.pop_front();
    ++given;
    room.notify_all();
    return slot;
  }

  void fail(const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex);
      failure = error;
    }
    room.notify_all();
    std::rethrow_exception(error);
  }

  // What is left of the slot that begins at `begin` of the order.
  ImageBatch batch_of(Slot& slot, int64_t begin) {
    ImageBatch batch;
    std::vector<int64_t> rows;
    for (size_t row = 0; row < slot.outcomes.size(); ++row) {
      auto& outcome = slot.outcomes[row];
      if (outcome.error) {
        fail(outcome.error);
      } else if (!outcome.problem.empty()) {
        skipped.push_back(std::move(outcome.problem));
      } else {
        rows.push_back(static_cast<int64_t>(row));
        batch.examples.push_back(order[static_cast<size_t>(begin) + row]);
      }
    }
    batch.views = std::move(slot.views);
    if (rows.size() < slot.outcomes.size()) {
      for (auto& view : batch.views) {
        view = view.index_select(0, at::tensor(rows, at::kLong));
      }
    }
    return batch;
  }

  void check_skipped() const {
    // A little more, or rounding could refuse exactly that share.
    const double most = kMostSkipped * static_cast<double>(order.size()) + 1e-6;
    require(
        static_cast<double>(skipped.size()) <= most, skipped.size(), " of ", order.size(),
        " images cannot be read; expected at most 1 in 100. ", joined(skipped, 3));
  }
};

ImageLoader::ImageLoader(
    const Examples& examples,
    std::vector<int64_t> order,
    std::vector<Preprocessing> views,
    int64_t batch_size,
    int threads) {
  require(static_cast<bool>(examples.image), "expected images, found examples of text");
  require<InternalError>(
      batch_size > 0 && threads > 0 && !views.empty(), "ImageLoader: batches of ", batch_size, ", ",
      threads, " threads, ", views.size(), " views");
  const auto outside = [&](int64_t example) { return example < 0 || example >= examples.size(); };
  require<InternalError>(
      std::none_of(order.begin(), order.end(), outside), "ImageLoader: the order leaves the ",
      examples.size(), " examples");
  state_ =
      std::make_unique<State>(examples, std::move(order), std::move(views), batch_size, threads);
  const auto count = std::min<int64_t>(threads, state_->size());
  for (int64_t i = 0; i < count; ++i) {
    state_->threads.emplace_back([state = state_.get()] { state->work(); });
  }
}

ImageLoader::~ImageLoader() = default;

std::optional<ImageBatch> ImageLoader::next() {
  auto& state = *state_;
  while (state.given * state.batch_size < state.size()) {
    const int64_t begin = state.given * state.batch_size;
    const auto slot = state.take();
    auto batch = state.batch_of(*slot, begin);
    if (!batch.examples.empty()) {
      return batch;
    }
  }
  if (state.failure) {
    std::rethrow_exception(state.failure);
  }
  state.check_skipped();
  return std::nullopt;
}

const std::vector<std::string>& ImageLoader::skipped() const {
  return state_->skipped;
}

}  // namespace theseus::data
