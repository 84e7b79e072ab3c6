#include "theseus/train/record.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>
#include <c10/util/StringUtil.h>
#include <fmt/format.h>

#include "theseus/base/machine_notes.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/evaluate/evaluate.h"
#include "theseus/output/model_card.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/side_files.h"
#include "theseus/output/text_file.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// At most this many points, each a mean over as many steps.
ordered_json averaged(const std::vector<ordered_json>& lines, int64_t steps) {
  constexpr int64_t kMost = 200;
  const auto every = (steps + kMost - 1) / kMost;
  auto points = ordered_json::array();
  double sum = 0;
  int64_t count = 0;
  for (const auto& line : lines) {
    if (!line.contains("loss")) {
      continue;
    }
    sum += line.at("loss").get<double>();
    const auto step = line.at("step").get<int64_t>();
    if (++count == every || step == steps) {
      points.push_back({{"step", step}, {"value", sum / static_cast<double>(count)}});
      sum = 0;
      count = 0;
    }
  }
  return points;
}

ordered_json measured(const std::vector<ordered_json>& lines, const Metric& metric) {
  auto points = ordered_json::array();
  for (const auto& line : lines) {
    if (!line.contains("validation_loss")) {
      continue;
    }
    const auto& loss = line.at("validation_loss");
    ordered_json point = {{"step", line.at("step")}, {"value", line.value(metric.name, loss)}};
    if (line.contains("low")) {
      point["low"] = line.at("low");
      point["high"] = line.at("high");
      point["loss"] = loss;
    }
    points.push_back(point);
  }
  return points;
}

const char* word_of(const Head& head) {
  return head.kind == Head::Kind::kNew    ? "new"
         : head.kind == Head::Kind::kKeep ? "keep"
                                          : "zero-shot";
}

std::vector<std::string> notes_on(
    const ordered_json& record, const Metric& metric, const Subject& subject) {
  auto notes = subject.portions->notes;
  if (subject.written != nullptr) {
    for (const auto& file : subject.written->left_out) {
      notes.push_back("not copied: " + file);
    }
  }
  if (subject.portions->left_out > 0) {
    notes.push_back(fmt::format(
        "{} examples were not learnt from: they are among those that are measured on",
        subject.portions->left_out));
  }
  const auto& held_out = subject.portions->held_out;
  for (const auto& [portion, words] :
       {std::pair(&subject.portions->training, "learnt from"),
        std::pair(&held_out, "measured on")}) {
    const bool classes = metric.higher_is_better && portion->examples != nullptr;
    const auto one =
        classes ? evaluate::only_class(*portion->examples, portion->places) : std::string();
    if (!one.empty()) {
      notes.push_back(fmt::format(
          "all {} examples that are {} are of one class, '{}': accuracy says nothing of the others",
          portion->places.size(), words, one));
    }
  }
  if (subject.head->beside) {
    const auto other = output::other_pooling(output::directory_of(subject.model->location()));
    if (!other.empty()) {
      notes.push_back(
          "the head reads the mean of the tokens; the model's own pooling is another: " + other);
    }
  }
  const auto& curve = record.at("curve");
  if (record.contains("best") &&
      !metric.better(record.at("best").at("value"), curve[0].at("value"))) {
    notes.push_back(fmt::format(
        "no step was better than the start, which has {} {:.4g}", metric.name,
        curve[0].at("value").get<double>()));
  } else if (record.contains("best") && record.at("best").at("step") == record.at("steps")) {
    notes.emplace_back("the best step is the last: more steps may be better");
  }
  if (subject.written != nullptr) {
    notes.insert(notes.end(), subject.written->notes.begin(), subject.written->notes.end());
  }
  return notes;
}

}  // namespace

ordered_json describe_training(
    const FinetuneOptions& options,
    const TrainingOptions& how,
    const Outcome& outcome,
    const Subject& subject) {
  const auto& model = *subject.model;
  const auto& portions = *subject.portions;
  ordered_json record = {
      {"theseus", options.version}, {"kind", "finetune"}, {"options", options.words}};
  record["model"] = {
      {"path", fs::weakly_canonical(options.model).string()},
      {"family", model.location().family},
      {"fingerprint", checkpoint::fingerprint(model.checkpoint())}};
  record["data"] = describe(portions.training, options.data);
  record["validation"] = portions.words;
  if (!portions.held_out.places.empty()) {
    record["held_out"] =
        describe(portions.held_out, portions.other ? options.validation : options.data);
  }
  if (!options.start_from.empty()) {
    record["start_from"] = fs::weakly_canonical(options.start_from).string();
    record["alpha"] = options.start_alpha;
  }
  record["head"] = word_of(*subject.head);
  if (subject.head->beside) {
    record["head_reads"] = "the mean of the tokens that are no padding";
  }
  record["write"] = subject.written == nullptr ? "adapter" : "model";
  record["trained"] = {
      {"tensors", subject.tensors},
      {"parameters", subject.trained},
      {"frozen_tensors", subject.frozen}};
  record["steps"] = how.schedule.steps;
  record["batch_size"] = options.batch_size;
  record["warmup"] = how.schedule.warmup;
  record["device"] = c10::str(options.placement.device);
  record["threads"] = at::get_num_threads();
  record["metric"] = how.metric.name;
  record["curve"] = measured(outcome.lines, how.metric);
  record["losses"] = averaged(outcome.lines, how.schedule.steps);
  if (outcome.best) {
    record["best"] = {{"step", outcome.best->step}, {"value", outcome.best->value}};
  }
  if (subject.written != nullptr) {
    record["norm"] = std::sqrt(subject.written->learnt.norm_squared);
    record["output_dtype"] = subject.written->storage;
  }
  record["notes"] = notes_on(record, how.metric, subject);
  for (const auto& note : machine_notes(options.placement.device, options.placement.dtype)) {
    record["notes"].push_back(note);
  }
  return record;
}

void write_card(const ordered_json& record, const std::string& library, const fs::path& directory) {
  auto card = record;
  card.erase("curve");
  card.erase("losses");
  card["target"] = card["model"];
  card.erase("model");
  output::write_model_card(directory, card, library);
}

}  // namespace theseus::train
