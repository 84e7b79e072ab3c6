#include "theseus/train/training.h"

#include <chrono>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/score.h"
#include "theseus/output/work_directory.h"
#include "theseus/train/memory.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Run {
 public:
  Run(gradient::Trainable& trainable,
      const Lesson& lesson,
      const TrainingOptions& options,
      const Watch& watch,
      const fs::path& directory)
      : trainable_(trainable),
        lesson_(lesson),
        options_(options),
        watch_(watch),
        directory_(directory),
        optimiser_(options.optimiser),
        begun_(begin()),
        best_(begun_.best),
        losses_(directory / kLossesFile, optimiser_.steps(), begun_.losses) {}

  Outcome finish() {
    const auto steps = options_.schedule.steps;
    if (lesson_.held_out != nullptr && optimiser_.steps() == 0) {
      measure();
    }
    while (optimiser_.steps() < steps) {
      with_context(fmt::format("training, step {}", optimiser_.steps() + 1), [&] { step(); });
      const auto done = optimiser_.steps();
      if (lesson_.held_out != nullptr && (done % options_.validate_every == 0 || done == steps)) {
        measure();
      }
      save_now_and_then();
    }
    if (best_ && best_->step != steps) {
      restore_leaves(directory_ / kBestFile, trainable_);
    }
    return {
        .best = best_,
        .lines = losses_.lines(),
        .learning = learning_,
        .measuring = measuring_,
        .seen = seen_};
  }

 private:
  Saved begin() {
    std::error_code ignored;
    return fs::exists(directory_ / output::kTrainingFile, ignored)
               ? restore(directory_, trainable_, optimiser_)
               : Saved();
  }

  void step() {
    const auto begun = Clock::now();
    const auto batch = lesson_.batches.read(optimiser_.steps());
    const auto at_a_time = sequences_at_a_time(options_.at_a_time, trainable_.model(), batch);
    trainable_.forget_gradients();
    const auto measured = gradient::add_gradients(trainable_, lesson_.loss, batch, at_a_time);
    const auto norm = clip_gradients(trainable_.leaves(), options_.clip);
    const auto rate = options_.schedule.rate(optimiser_.steps());
    optimiser_.step(trainable_.leaves(), rate);
    losses_.add(
        {{"step", optimiser_.steps()},
         {"loss", measured.loss},
         {"rate", rate},
         {"gradient_norm", norm}});
    seen_ += batch.size();
    learning_ += since(begun);
    tell(fmt::format(
        "training: loss {:.4f}, {:.3g} examples/s", measured.loss,
        static_cast<double>(seen_) / learning_));
  }

  void measure() {
    const auto begun = Clock::now();
    trainable_.forget_gradients();  // room for the activations
    const auto measured =
        lesson_.held_out->measure(lesson_.loss, options_.at_a_time, [&](int64_t done, int64_t all) {
          tell(fmt::format("training: measuring, {} of {}", done, all));
        });
    measuring_ += since(begun);
    nlohmann::ordered_json line = {
        {"step", optimiser_.steps()}, {"validation_loss", measured.loss}};
    if (options_.metric.name == "accuracy") {
      const auto score = evaluate::accuracy(measured.right, measured.count);
      line.update({{"accuracy", score.value}, {"low", score.low}, {"high", score.high}});
    }
    losses_.add(line);
    const Best now{
        .step = optimiser_.steps(),
        .value = options_.metric.value(measured),
        .loss = measured.loss};
    if (now.step > 0 && (!best_ || options_.metric.better(now, *best_))) {
      best_ = now;
      if (optimiser_.steps() < options_.schedule.steps) {
        save_leaves(directory_ / kBestFile, trainable_);
      }
    }
  }

  // Not so often that saving takes more than a twentieth of the time. The end is always saved: writing
  // the output can be interrupted, too.
  void save_now_and_then() {
    const bool last = optimiser_.steps() == options_.schedule.steps;
    const auto pause = options_.save_every > 0 ? std::max(options_.save_every, 20 * saving_) : 0;
    if (!last && since(saved_) < pause) {
      return;
    }
    const auto begun = Clock::now();
    save(directory_, trainable_, optimiser_, {.best = best_, .losses = losses_.hash()});
    saved_ = Clock::now();
    saving_ = since(begun);
  }

  void tell(const std::string& doing) const {
    watch_(
        static_cast<double>(optimiser_.steps()), static_cast<double>(options_.schedule.steps),
        doing);
  }

  gradient::Trainable& trainable_;
  const Lesson& lesson_;
  const TrainingOptions& options_;
  const Watch& watch_;
  const fs::path& directory_;
  AdamW optimiser_;
  const Saved begun_;
  std::optional<Best> best_;
  Losses losses_;
  int64_t seen_ = 0;                                  // examples, by this process
  double learning_ = 0, measuring_ = 0, saving_ = 0;  // seconds
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

double Metric::value(const gradient::Measured& measured) const {
  return name == "accuracy"
             ? static_cast<double>(measured.right) / static_cast<double>(measured.count)
             : measured.loss;
}

bool Metric::better(double value, double than) const {
  return higher_is_better ? value > than : value < than;
}

bool Metric::better(const Best& one, const Best& than) const {
  return better(one.value, than.value) || (one.value == than.value && one.loss < than.loss);
}

Outcome run_training(
    gradient::Trainable& trainable,
    const Lesson& lesson,
    const TrainingOptions& options,
    const Watch& watch,
    const fs::path& directory) {
  return Run(trainable, lesson, options, watch, directory).finish();
}

}  // namespace theseus::train
