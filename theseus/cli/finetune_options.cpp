#include "theseus/cli/finetune_options.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/base/units.h"
#include "theseus/cli/device_option.h"
#include "theseus/cli/numbers.h"
#include "theseus/cli/recipe.h"
#include "theseus/cli/summary.h"
#include "theseus/model/room.h"
#include "theseus/train/memory.h"

namespace theseus::cli {
namespace {

const auto kCount = CLI::Range(int64_t{1}, int64_t{1} << 40);

// A measurement in the words of `evaluate`.
std::string measured_text(const std::string& metric, double value) {
  return metric == "accuracy" ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value);
}

}  // namespace

void FinetuneOptions::add(CLI::App& app) {
  app_ = &app;
  app.add_option("--model", given_.model, "model directory, weights file or index file")
      ->required()
      ->type_name("MODEL");
  add_data(app);
  app.add_option("--out", given_.out, "directory to write; must not exist")
      ->required()
      ->type_name("DIR");
  add_training(app);
  add_running(app);
}

void FinetuneOptions::add_data(CLI::App& app) {
  auto& how = given_;
  app.add_option("--data", how.data, "examples: PATH, or NAME:PATH for a layout by name")
      ->required();
  app.add_option("--split", how.split, "of the data (default: train where there is one)")
      ->check(split_error);
  app.add_option(
      "--validation", how.validation,
      "what is measured on: a split of the data, part of one as in train[90:100], other data, or "
      "none (default: a tenth held out, fewer where steps are few)");
  app.add_option(
         "--validation-split", how.validation_split,
         "of other data: train, val or test (default: val, or the only one)")
      ->check(split_error);
  app.add_option(
         "--validation-limit", how.validation_limit,
         "draw so many of a split or of other data (default: all, fewer where steps are few)")
      ->check(kCount);
  app.add_option("--limit", how.limit, "draw so many examples (default: all)")->check(kCount);
  app.add_option(
      "--template", how.templates, "zero-shot prompt, {c} is the class; may be repeated");
  app.add_option("--wording", how.wording, "text from fields, as in 'premise: {premise}'");
  app.add_option("--second", how.second, "the second text of a pair");
  app.add_option("--answer", how.answer, "what the model should write");
  app.add_option("--max-length", how.longest, "tokens of a text (default: what the model takes)")
      ->check(kCount);
  app.add_option("--pack", how.pack, "of causal models: texts end to end in rows of so many tokens")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
}

void FinetuneOptions::add_training(CLI::App& app) {
  auto& how = given_;
  app.add_option(
      "--head", how.head, "new, zero-shot or keep (default: what model and data are made for)");
  app.add_option("--lora", how.rank, "train factors of this rank, and write a PEFT adapter")
      ->type_name("RANK")
      ->check(kCount);
  app.add_option(
         "--lora-alpha", how.lora_alpha, "scale of the factors times the rank (default: 2 RANK)")
      ->check(number_from(1e-6, 1e9));
  app.add_option(
      "--lora-on", how.lora_on, "layers that get factors, as in q_proj (default: all in blocks)");
  app.add_option(
      "--freeze", how.freeze,
      "what is not trained: part of a name, or a whole one with '*'; may be repeated");
  app.add_option(
      "--start-from", how.start_from,
      "an update for this model ('transport --write update'), or a tune of it, to begin with");
  app.add_option("--alpha", how.start_alpha, "strength of that")
      ->capture_default_str()
      ->check(strength_error);
  app.add_option("--steps", how.steps, "steps")->capture_default_str();
  app.add_option("--batch-size", how.batch_size, "examples of a step")->capture_default_str();
  app.add_option(
         "--at-a-time", how.at_a_time, "examples that are in memory at once (default: by size)")
      ->check(kCount);
  app.add_option("--lr", how.rate, "largest learning rate")
      ->capture_default_str()
      ->check(number_error);
  app.add_option("--weight-decay", how.decay, "of AdamW")
      ->capture_default_str()
      ->check(number_from(0, 1e6));
  app.add_option("--warmup", how.warmup, "steps of rising rate (default: a tenth)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app.add_option("--clip", how.clip, "largest norm of a gradient; 0: no limit")
      ->capture_default_str()
      ->check(number_from(0, 1e30));
  app.add_option(
         "--validate-every", how.validate_every,
         "steps (default: a twentieth of all, or so many that measuring takes a quarter of the "
         "time "
         "of learning)")
      ->check(kCount);
}

void FinetuneOptions::add_running(CLI::App& app) {
  auto& how = given_;
  add_seed(app, how.seed, "of what is drawn");
  add_device(app, device_);
  app.add_option("--dtype", dtype_, "compute in float32, bfloat16 or float16")
      ->capture_default_str();
  app.add_option("--threads", threads_, "processor threads (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  app.add_option("--save-every", how.save_every, "seconds between two saves of unfinished work")
      ->capture_default_str()
      ->check(seconds_error);
  app.add_option("--output-dtype", output_dtype_, kOutputDtypeHelp)->capture_default_str();
  app.add_flag("--resume", how.resume, "go on with unfinished work, and fail without any");
  app.add_flag("--fresh", how.fresh, "start over, and replace an earlier output");
}

train::FinetuneOptions FinetuneOptions::read(bool quiet) const {
  require(
      app_->count("--alpha") == 0 || app_->count("--start-from") > 0,
      "--alpha has no effect without --start-from");
  require(
      app_->count("--output-dtype") == 0 || app_->count("--lora") == 0,
      "--output-dtype is for a model, and --lora writes an adapter");
  auto result = given_;
  result.output_dtype = output::parse_output_dtype(output_dtype_);
  if (threads_ > 0) {
    at::set_num_threads(static_cast<int>(threads_));
  }
  const auto dtype = parse_compute_dtype(dtype_);
  const auto room = model::room_for(result.model, train::bytes_a_weight(dtype, result.rank > 0));
  result.placement = {.device = device_of(device_, quiet, room), .dtype = dtype};
  result.version = THESEUS_VERSION;
  result.words = given_options(*app_);
  result.recipe = recipe_of(*app_);
  return result;
}

std::string finetune_text(const nlohmann::ordered_json& record, const std::string& out) {
  const std::string metric = record.at("metric");
  auto text = fmt::format(
      "{} trained, {} written to {}\n",
      count_text(record.at("trained").at("parameters").get<int64_t>()) + " parameters",
      record.at("write").get<std::string>(), out);
  if (record.contains("best")) {
    text += fmt::format(
        "{:<12} {} at the start, {} at the best of {} steps, {}\n", metric,
        measured_text(metric, record.at("curve").at(0).at("value")),
        measured_text(metric, record.at("best").at("value")), record.at("steps").get<int64_t>(),
        record.at("best").at("step").get<int64_t>());
  }
  text += fmt::format("{:<12} {}\n", "measured on", record.at("validation").get<std::string>());
  if (record.contains("seconds")) {  // not of an output that was there before
    const auto& seconds = record.at("seconds");
    text += fmt::format(
        "{:<12} {:.1f} s of learning{}, {:.1f} s of measuring\n", "time",
        seconds.at("learning").get<double>(),
        record.contains("examples_per_second")
            ? fmt::format(" ({:.3g} examples/s)", record.at("examples_per_second").get<double>())
            : "",
        seconds.at("measuring").get<double>());
  }
  for (const auto& note : record.at("notes")) {
    text += "note: " + note.get<std::string>() + "\n";
  }
  return text + history_text(record);
}

}  // namespace theseus::cli
