#include "theseus/evaluate/sweep.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/temporary_directory.h"
#include "theseus/base/text.h"
#include "theseus/base/units.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/data/part.h"
#include "theseus/data/splits.h"
#include "theseus/evaluate/head.h"
#include "theseus/output/write_update.h"

namespace theseus::evaluate {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostBytes = int64_t{8} << 30;  // of inputs that are kept for every alpha

// The test split, part of it, or data that are called so.
bool is_test(const std::string& data, const std::string& split) {
  const auto part = data::find_part(split);
  const auto word = part ? part->split : split;
  const auto path = std::filesystem::path(data).lexically_normal();
  const auto last = path.has_filename() ? path : path.parent_path();
  return word == "test" || (word.empty() && data::split_meant(last.stem().string()) == "test");
}

bool changes_text(const model::Model& model, const Update& update) {
  const auto& parameters = model.architecture().parameters;
  return std::any_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    const auto of_text = [](const std::string& space) { return space.starts_with("text."); };
    return update.contains(parameter.tensor) &&
           std::any_of(parameter.axes.begin(), parameter.axes.end(), of_text);
  });
}

// Among examples of one class the best strength is one that takes everything for that class.
void require_several_classes(const data::Examples& examples, const std::vector<int64_t>& order) {
  const auto one = only_class(examples, order);
  require(
      one.empty(), "all ", order.size(), " examples to choose a strength on are of one class, '",
      one, "'; give examples of several");
}

// Every step of `examples`, kept for every alpha. What could not be decoded is added to `skipped`. Throws
// InputError when they take too much memory.
std::vector<Step> read_steps(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    model::Reader& reader,
    const FeedOptions& options,
    std::vector<std::string>& skipped) {
  std::vector<Step> steps;
  int64_t bytes = 0;
  const auto lost = feed(examples, order, reader, options, [&](Step&& step) {
    for (const auto& [name, tensor] : step.batch) {
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
    require(
        bytes <= kMostBytes, "the examples take more than ", bytes_text(kMostBytes),
        " when they are kept for every alpha; give --limit");
    steps.push_back(std::move(step));
  });
  skipped.insert(skipped.end(), lost.begin(), lost.end());
  return steps;
}

}  // namespace

Strengthened::Strengthened(model::Model& model, const Update& update)
    : model_(model), update_(update) {
  for (const auto& [name, delta] : update) {
    base_[name] = model.weights()[name].to(at::kCPU, at::kFloat).clone();
  }
}

Strengthened::~Strengthened() {
  for (const auto& [name, delta] : update_) {
    model_.weights().restore(name);
  }
}

void Strengthened::set(double alpha) {
  for (const auto& [name, delta] : update_) {
    model_.weights().replace(name, at::add(base_.at(name), delta, alpha));
  }
}

Update read_update(const std::string& path, const model::Model& model) {
  return with_context("reading the update " + path, [&] {
    std::error_code ignored;
    const auto expected =
        c10::str("expected ", output::kUpdateFile, " of 'transport --write update'");
    require(
        !std::filesystem::is_directory(path, ignored) ||
            std::filesystem::exists(std::filesystem::path(path) / output::kUpdateFile, ignored),
        "there is none in it; ", expected);
    const auto file = checkpoint::Checkpoint::open(path, {output::kUpdateFile});
    Update update;
    for (const auto& info : file.tensors()) {
      const auto& parameters = model.architecture().parameters;
      const auto found = std::find_if(
          parameters.begin(), parameters.end(),
          [&](const auto& parameter) { return parameter.tensor == info.name; });
      require(
          found != parameters.end(), "the model has no tensor ", info.name, "; ", expected,
          " for this target");
      const auto shape = model.checkpoint().info(found->stored).shape;
      require(
          shape == info.shape, info.name, " is ", at::IntArrayRef(info.shape),
          " in the update and ", at::IntArrayRef(shape), " in the model");
      const auto delta = file.tensor(info.name).to(at::kFloat);
      require(
          found->role != model::Role::kTable || delta.count_nonzero().item<int64_t>() == 0,
          "it changes ", info.name, ", which no transport does, so it is a model and no update; ",
          expected);
      update[info.name] = delta;
    }
    require(!update.empty(), "it holds no tensors");
    return update;
  });
}

Update carry_update(const output::JobOptions& options, const model::Model& model) {
  const TemporaryDirectory directory("theseus-sweep");
  auto job = options;
  job.write = "update";
  job.out = directory.path() / "update";
  output::transport_job(job, [](auto&&...) {});
  auto update = read_update(job.out.string(), model);
  for (auto& [tensor, delta] : update) {
    delta = delta.clone();  // the file goes
  }
  return update;
}

void scale(Update& update, const std::vector<std::string>& scales) {
  for (const auto& text : scales) {
    const auto place = text.rfind('=');
    double factor = 0;
    size_t used = 0;
    try {
      factor = std::stod(text.substr(place + 1), &used);
    } catch (const std::exception&) {
      used = 0;
    }
    require(
        place != std::string::npos && place > 0 && used > 0 && used == text.size() - place - 1 &&
            std::isfinite(factor),
        "--scale: '", text, "' is not WORDS=FACTOR, as in mlp=0.5");
    bool any = false;
    for (auto& [name, delta] : update) {
      if (name.find(text.substr(0, place)) != std::string::npos) {
        delta = delta * factor;
        any = true;
      }
    }
    require(any, "--scale: no tensor of the update has '", text.substr(0, place), "' in its name");
  }
}

Choosing open_choosing(model::Model& model, const EvaluateOptions& options) {
  take_own_head(model);
  Choosing result{
      .examples = open_data(
          options.data, options.split.empty() ? data::kValidation : options.split, model, options)};
  result.word = task_word(model, result.examples, options);
  const auto task = make_task(result.word);
  require(!task->trains(), "a sweep measures a model as it is; task ", result.word, " would train");
  result.notes = number_classes(model, result.word, options.settings, result.examples);
  result.order = choose(result.examples, options.limit, options.seed);
  for (const auto& note : note_on_fewer("--limit", options.limit, result.examples.size())) {
    result.notes.push_back(note);
  }
  task->check(model, result.examples, result.order, options.settings);
  if (result.word == "classify" || result.word == "zero-shot") {
    require_several_classes(result.examples, result.order);
  }
  return result;
}

ordered_json sweep(
    model::Model& model,
    const Update& update,
    const EvaluateOptions& options,
    const Strengths& strengths,
    const Watch& watch) {
  const auto choosing = open_choosing(model, options);
  const auto& examples = choosing.examples;
  const auto& word = choosing.word;
  model::Reader reader(model, options.longest);
  std::vector<std::string> skipped;
  const auto steps =
      read_steps(examples, choosing.order, reader, feed_for(model, word, options), skipped);
  const bool same_text = !changes_text(model, update);
  std::unique_ptr<Task> begun;
  const auto measure = [&] {
    auto task = begun && same_text ? begun->again() : nullptr;
    if (!task) {
      task = make_task(word);
      task->begin(model, reader, examples, options.settings);
    }
    for (const auto& step : steps) {
      task->add(model, step, examples);
    }
    begun = std::move(task);
    return begun->score();
  };
  const auto base = measure();
  Strengthened strengthened(model, update);
  const auto found = search(
      strengths,
      [&](double alpha) {
        strengthened.set(alpha);
        return alpha == 0 ? base : measure();
      },
      watch);
  ordered_json record = {{"kind", "sweep"},        {"model", model.location().weights.string()},
                         {"data", options.data},   {"split", examples.split},
                         {"task", word},           {"metric", base.metric},
                         {"base", describe(base)}, {"curve", found.curve},
                         {"best", found.best}};
  auto notes = notes_on_inputs(reader, skipped);
  notes.insert(notes.end(), choosing.notes.begin(), choosing.notes.end());
  if (options.settings.head) {
    record["head"] = options.settings.head->about;
    const auto more = notes_on_head(*options.settings.head);
    notes.insert(notes.end(), more.begin(), more.end());
  }
  add_prompts(word, examples, options.settings, record);
  if (const auto note = note_without_gain(found, base); !note.empty()) {
    notes.push_back(note);
  }
  if (found.at_the_end) {
    notes.emplace_back(kAtTheEnd);
  }
  if (is_test(options.data, examples.split)) {
    notes.emplace_back(
        "the strength is chosen on test examples, so its score there flatters: report that of "
        "others");
  }
  record["notes"] = notes;
  return record;
}

}  // namespace theseus::evaluate
