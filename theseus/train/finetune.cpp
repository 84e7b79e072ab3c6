#include "theseus/train/finetune.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/made_files.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/evaluate/content.h"
#include "theseus/output/model_card.h"
#include "theseus/output/opened.h"
#include "theseus/output/output_dtype.h"
#include "theseus/output/side_files.h"
#include "theseus/output/space.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"
#include "theseus/train/portions.h"
#include "theseus/train/record.h"
#include "theseus/train/save.h"
#include "theseus/train/setup.h"
#include "theseus/train/training.h"
#include "theseus/transport/schedule.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void check(const FinetuneOptions& options) {
  require(options.steps > 0, "--steps ", options.steps, ": at least one step is needed");
  require(options.batch_size > 0, "--batch-size ", options.batch_size, " is not positive");
  constexpr double kMostRate =
      100;  // steps of AdamW are about as long as this, whatever the gradient
  require(options.rate > 0, "--lr ", options.rate, " is not positive");
  require(
      options.rate <= kMostRate, "--lr ", options.rate, " is no rate; expected at most ",
      kMostRate);
  require(
      options.decay >= 0 && std::isfinite(options.decay), "--weight-decay ", options.decay,
      " is negative");
  require(
      options.clip >= 0 && std::isfinite(options.clip), "--clip ", options.clip, " is negative");
  require(
      options.warmup <= options.steps, "--warmup ", options.warmup, " is more than all ",
      options.steps, " steps");
  require(options.rank >= 0, "--lora ", options.rank, " is no rank");
  require(
      options.rank > 0 || (options.lora_on.empty() && options.lora_alpha == 0),
      "--lora-on and --lora-alpha are for --lora");
  require(std::isfinite(options.start_alpha), "--alpha ", options.start_alpha, " is not finite");
}

// What an earlier training left beside the model, which this one writes anew.
const std::set<std::string> kNotInputs = {
    output::kRecordFile, output::kRecipeFile, output::kCardFile, kLossesFile};

// See output::Identity.
ordered_json identity_of(
    const FinetuneOptions& options, const model::Model& model, const Portions& portions) {
  ordered_json job = {
      {"version", options.version},
      {"options", output::deciding_options(options.words)},
      {"device", options.placement.device.is_cpu() ? "cpu" : "cuda"}};
  auto& inputs = job["inputs"];
  inputs["the model"] = checkpoint::fingerprint(model.checkpoint());
  inputs["the config of the model"] = hash_of_file(model.location().config);
  inputs["what lies beside the model"] = output::hash_of_copied_files(model, kNotInputs);
  inputs["what is learnt from"] =
      evaluate::hash_of_examples(*portions.training.examples, portions.training.places);
  if (!portions.held_out.places.empty()) {
    inputs["what is measured on"] =
        evaluate::hash_of_examples(*portions.held_out.examples, portions.held_out.places);
  }
  auto files = output::entries_of(options.start_from);
  files.emplace_back(options.start_from);
  for (const auto& file : files) {
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) {
      inputs["the start's " + file.filename().string()] = hash_of_file(file);
    }
  }
  return job;
}

// --fresh replaces an output, and must not take an input with it.
void require_apart(const FinetuneOptions& options) {
  const auto normal = options.out.lexically_normal();
  const auto out = fs::weakly_canonical(normal.has_filename() ? normal : normal.parent_path());
  for (const fs::path& input :
       {options.model, fs::path(options.start_from), fs::path(options.data)}) {
    const auto path = input.empty() ? input : fs::weakly_canonical(input);
    const auto meets = std::mismatch(out.begin(), out.end(), path.begin(), path.end());
    require(
        input.empty() || (meets.first != out.end() && meets.second != path.end()),
        "--out: ", options.out.string(), " is, holds or lies in ", input.string(), ", an input");
  }
}

TrainingOptions training_options(const FinetuneOptions& options, bool tokens, int64_t held_out) {
  return {
      .schedule =
          {.peak = options.rate,
           .steps = options.steps,
           .warmup = options.warmup < 0 ? options.steps / 10 : options.warmup},
      .optimiser = {.decay = options.decay},
      .clip = options.clip,
      .at_a_time = options.at_a_time,
      .validate_every = options.validate_every > 0
                            ? options.validate_every
                            : validate_every(options.steps, options.batch_size, held_out),
      .save_every = options.save_every,
      .metric = {.name = tokens ? "loss" : "accuracy", .higher_is_better = !tokens}};
}

// Bytes while it works, two states at a time among them, and for the output.
int64_t disk_needed(const Setup& setup, const FinetuneOptions& options) {
  const auto leaves = 4 * setup.trained();
  return 7 * leaves +
         (options.rank > 0 ? leaves : output::bytes_of_output(setup.model, options.output_dtype));
}

// Of what this process has read: an interrupted one may have met others, so these are not in the file.
std::vector<std::string> notes_on_inputs(
    const model::Reader& reader, const Batches& batches, const HeldOut* held_out) {
  auto skipped = batches.skipped();
  if (held_out != nullptr) {
    skipped.insert(skipped.end(), held_out->skipped().begin(), held_out->skipped().end());
  }
  std::vector<std::string> notes;
  notes.reserve(3);  // gcc 12 takes growing it for an overflow
  if (!skipped.empty()) {
    constexpr size_t kShown = 5;
    notes.push_back("images that could not be decoded were left out: " + joined(skipped, kShown));
  }
  if (reader.dropped() > 0) {
    notes.push_back(c10::str(
        reader.dropped(), " tokens at the end of the packed texts fill no row and were left out"));
  }
  if (reader.truncated() > 0) {
    notes.push_back(
        c10::str("some texts are longer than ", reader.limit_words(), ", and were cut"));
  }
  return notes;
}

// Options that would be ignored.
void require_for_images(
    const FinetuneOptions& options, const model::Model& model, const data::Examples& examples) {
  const bool prompts = examples.image && model.weights().has("logit_scale");
  require(
      options.templates.empty() || prompts,
      "--template is for models of images and text, on images; this is a ", model.location().family,
      " model", examples.image ? "" : ", and these are texts");
  require(
      options.longest == 0 || !examples.image || prompts,
      "--max-length is for texts, and this model reads images alone");
}

}  // namespace

ordered_json finetune(const FinetuneOptions& options, const Watch& watch) {
  check(options);
  require_apart(options);
  auto model = with_context("opening the model", [&] {
    return model::Model::open(options.model, {.placement = options.placement});
  });
  require(
      options.pack == 0 || gradient::is_causal(model),
      "--pack is for causal models, and this is a ", model.location().family,
      " model that reads its texts one by one");
  auto portions = choose_portions(options, model);
  Setup setup(options, model, *portions.examples);
  number_classes(setup.head, portions);
  const output::Identity identity = [&] { return identity_of(options, model, portions); };
  if (auto there = output::find_finished(options.out, identity, options.fresh); !there.is_null()) {
    return there;
  }
  output::WorkDirectory work(options.out, identity, options.fresh);
  work.identify();
  require(
      !options.resume || work.resumed(), "--resume: there is no unfinished work in ",
      work.path().string(), "; it is kept from the first save on (--save-every)");
  setup.begin(options);
  output::require_space(work.path(), disk_needed(setup, options), "the training");
  const auto loss = gradient::loss_for(model, setup.reader, *portions.examples, options.templates);
  require_for_images(options, model, *portions.examples);
  if (portions.other) {
    gradient::loss_for(model, setup.reader, *portions.other, options.templates);
  }

  const BatchOptions batching{
      .batch_size = options.batch_size,
      .threads = at::get_num_threads(),
      .seed = options.seed,
      .keep_bytes = transport::available_memory() / 8,
      .pack = options.pack};
  const Count reading = [&](int64_t done, int64_t all) {
    watch(static_cast<double>(done), static_cast<double>(all), "reading images");
  };
  Batches batches(portions.training, model, setup.reader, batching, reading);
  std::optional<HeldOut> held_out;
  if (!portions.held_out.places.empty()) {
    const auto most_rows =
        options.validation_limit > 0 ? 0 : most_held_out(options.steps, options.batch_size);
    held_out.emplace(portions.held_out, model, setup.reader, batching, most_rows, reading);
    if (held_out->rows_left_out() > 0) {
      portions.notes.push_back(c10::str(
          "of the packed texts that are measured on the first ", held_out->size(), " of ",
          held_out->size() + held_out->rows_left_out(),
          " rows are taken, since the training is short"));
    }
  }
  const bool tokens = model.architecture().generation.possible;
  const auto how = training_options(options, tokens, held_out ? held_out->size() : 0);
  work.keep();
  auto* const measured = held_out ? &*held_out : nullptr;
  const Lesson lesson{.loss = loss, .batches = batches, .held_out = measured};
  work.went_on_at(c10::str("step ", saved_steps(work.path()) + 1, " of ", options.steps));
  const auto outcome = work.keeping<NumericError>(
      [&] { return run_training(setup.trainable, lesson, how, watch, work.path()); });

  watch(1, 1, "writing");
  const auto written =
      work.keeping<NumericError>([&] { return setup.write(options, work.staged()); });
  const auto stored = written ? written->dtype : at::kFloat;
  const auto learnt = setup.learnt(written);
  work.check_result([&] { output::require_learnt(learnt, stored); });
  work.keeping<InputError>([&] { output::require_stored(learnt, stored); });
  note_made(work.staged() / kLossesFile);
  fs::copy_file(work.path() / kLossesFile, work.staged() / kLossesFile);
  if (!options.recipe.empty()) {
    output::write_text(work.staged() / output::kRecipeFile, options.recipe);
  }
  auto record = describe_training(
      options, how, outcome,
      {.model = &model,
       .portions = &portions,
       .head = &setup.head,
       .trained = setup.trained(),
       .tensors = static_cast<int64_t>(setup.trainable.leaves().size()),
       .frozen = setup.choice.frozen,
       .written = written ? &*written : nullptr});
  if (options.pack > 0) {
    record["pack"] = {{"length", options.pack}, {"rows", batches.size()}};
  }
  write_card(record, written ? output::library_of(model.location().family) : "peft", work.staged());
  work.finish(output::kRecordFile, record);
  for (const auto& note : notes_on_inputs(setup.reader, batches, measured)) {
    record["notes"].push_back(note);
  }
  record["seconds"] = {{"learning", outcome.learning}, {"measuring", outcome.measuring}};
  if (outcome.learning > 0) {
    record["examples_per_second"] = static_cast<double>(outcome.seen) / outcome.learning;
  }
  return record;
}

}  // namespace theseus::train
