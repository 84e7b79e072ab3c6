#include "theseus/train/finetune.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/data/sampling.h"
#include "theseus/evaluate/evaluate.h"
#include "theseus/output/model_card.h"
#include "theseus/output/side_files.h"
#include "theseus/output/space.h"
#include "theseus/output/work_directory.h"
#include "theseus/output/write_adapter.h"
#include "theseus/train/choose.h"
#include "theseus/train/lora.h"
#include "theseus/train/portions.h"
#include "theseus/train/record.h"
#include "theseus/train/start.h"
#include "theseus/train/training.h"
#include "theseus/train/write_tuned.h"
#include "theseus/transport/schedule.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void check(const FinetuneOptions& options) {
  require(options.steps > 0, "--steps ", options.steps, ": at least one step is needed");
  require(options.batch_size > 0, "--batch-size ", options.batch_size, " is not positive");
  require(
      options.rate > 0 && std::isfinite(options.rate), "--lr ", options.rate, " is not positive");
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

// Text that is equal for runs that must give the same bytes.
std::string identity_of(
    const FinetuneOptions& options, const model::Model& model, const Portions& portions) {
  ordered_json job = {
      {"version", options.version},
      {"options", options.words},
      {"threads", at::get_num_threads()},
      {"examples", data::hash_of(*portions.training.examples, portions.training.places)}};
  auto files = model.checkpoint().files();
  files.push_back(model.location().config);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(options.start_from, ignored)) {
    files.push_back(entry.path());
  }
  files.push_back(options.start_from);
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    if (!file.empty() && fs::is_regular_file(file, ignored)) {
      job["inputs"].push_back(
          {fs::weakly_canonical(file).string(), fs::file_size(file),
           fs::last_write_time(file).time_since_epoch().count()});
    }
  }
  return job.dump(1, ' ', false, ordered_json::error_handler_t::replace);
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

// Everything that a step needs, made in this order.
struct Setup {
  Setup(const FinetuneOptions& options, model::Model& opened, const Portions& portions)
      : model(opened),
        head(choose_head(options.head, model, *portions.examples)),
        choice(choose_trained(
            model.architecture(),
            static_cast<bool>(portions.examples->image),
            head,
            {.freeze = options.freeze, .adapt = options.lora_on, .low_rank = options.rank > 0})),
        reader(model, options.longest),
        trainable(model) {
    require(
        options.rank == 0 || head.replaced == 0 ||
            head.replaced == static_cast<int64_t>(head.classes.size()),
        "--head new: the model's own head has ", head.replaced, " classes and the data ",
        head.classes.size(), "; an adapter cannot change that: train without --lora");
  }

  void begin(const FinetuneOptions& options) {
    Start start;
    if (!options.start_from.empty()) {
      start = read_start(options.start_from, options.start_alpha, options.rank, model);
    }
    for (const auto& [tensor, value] : start.tensors) {
      model.weights().replace(tensor, value);
    }
    for (const auto& tensor : choice.tensors) {
      const auto found = start.tensors.find(tensor);
      found == start.tensors.end() ? trainable.train(tensor)
                                   : trainable.train(tensor, found->second);
      start.tensors.erase(tensor);
    }
    if (head.kind == Head::Kind::kNew) {
      start.tensors.erase(head.module + ".weight");
      start.tensors.erase(head.module + ".bias");
      begin_head(head, options.seed, trainable);
    }
    fixed = std::move(start.tensors);
    begin_lora(
        choice.modules, options.rank,
        options.lora_alpha > 0 ? options.lora_alpha : 2.0 * static_cast<double>(options.rank),
        options.seed, start.low_rank, trainable);
  }

  int64_t trained() const {
    int64_t count = 0;
    for (const auto& [name, leaf] : trainable.leaves()) {
      count += leaf.numel();
    }
    return count;
  }

  model::Model& model;
  Head head;
  Choice choice;
  model::Reader reader;
  gradient::Trainable trainable;
  Tensors fixed;  // what a start changed and nothing trains
};

TrainingOptions training_options(const FinetuneOptions& options, bool tokens) {
  return {
      .schedule =
          {.peak = options.rate,
           .steps = options.steps,
           .warmup = options.warmup < 0 ? options.steps / 10 : options.warmup},
      .optimiser = {.decay = options.decay},
      .clip = options.clip,
      .at_a_time = options.at_a_time,
      .validate_every = options.validate_every > 0 ? options.validate_every
                                                   : std::max<int64_t>(1, options.steps / 20),
      .save_every = options.save_every,
      .metric = {.name = tokens ? "loss" : "accuracy", .higher_is_better = !tokens}};
}

// PEFT's word for what the adapter is for.
std::string task_of(const model::Architecture& architecture, const Head& head) {
  const auto& generation = architecture.generation;
  return generation.possible
             ? (generation.grows == "decoder_input_ids" ? "SEQ_2_SEQ_LM" : "CAUSAL_LM")
         : head.kind == Head::Kind::kNew ? architecture.head_task
                                         : "";
}

void write_factors(const FinetuneOptions& options, Setup& setup, const fs::path& directory) {
  const auto& architecture = setup.model.architecture();
  const auto named = [&](const std::string& name) {
    return name_with_head(architecture, setup.head, name);
  };
  output::AdapterOptions about{
      .task = task_of(architecture, setup.head),
      .base_model = fs::weakly_canonical(options.model).string()};
  for (const auto& layer : architecture.linears) {
    about.modules.push_back(named(layer.module));
  }
  std::map<std::string, update::LowRank> modules;
  for (const auto& module : setup.choice.modules) {
    const auto factors = setup.trainable.low_rank(module);
    modules[named(module)] = {
        .up = factors.up.detach().cpu(),
        .down = factors.down.detach().cpu(),
        .scale = factors.scale};
  }
  if (setup.head.kind == Head::Kind::kNew) {
    for (const char* part : {".weight", ".bias"}) {
      const auto name = setup.head.module + part;
      about.saved[name] = setup.trainable.leaves().at(name).detach().cpu();
    }
  }
  output::write_adapter(directory, modules, about);
}

// Bytes while it works and for the output.
int64_t disk_needed(const Setup& setup, bool adapter) {
  const auto leaves = 4 * setup.trained();
  return 5 * leaves + (adapter ? leaves : output::bytes_of_output(setup.model));
}

}  // namespace

ordered_json finetune(const FinetuneOptions& options, const Watch& watch) {
  check(options);
  require_apart(options);
  auto model = with_context("opening the model", [&] {
    return model::Model::open(options.model, {.placement = options.placement});
  });
  const auto portions = choose_portions(options, model);
  Setup setup(options, model, portions);
  output::WorkDirectory work(options.out, identity_of(options, model, portions), options.fresh);
  require(
      !options.resume || work.resumed(), "--resume: there is no unfinished work in ",
      work.path().string());
  setup.begin(options);
  output::require_space(work.path(), disk_needed(setup, options.rank > 0), "the training");
  const auto loss = gradient::loss_for(model, setup.reader, *portions.examples, options.templates);
  if (portions.other) {
    gradient::loss_for(model, setup.reader, *portions.other, options.templates);
  }

  const BatchOptions batching{
      .batch_size = options.batch_size,
      .threads = at::get_num_threads(),
      .seed = options.seed,
      .keep_bytes = transport::available_memory() / 8};
  const Count reading = [&](int64_t done, int64_t all) {
    watch(static_cast<double>(done), static_cast<double>(all), "reading images");
  };
  Batches batches(portions.training, model, setup.reader, batching, reading);
  std::optional<HeldOut> held_out;
  if (!portions.held_out.places.empty()) {
    held_out.emplace(portions.held_out, model, setup.reader, batching, reading);
  }
  const bool tokens = model.architecture().generation.possible;
  const auto how = training_options(options, tokens);
  work.keep();
  const auto outcome = run_training(
      setup.trainable, loss, batches, held_out ? &*held_out : nullptr, how, watch, work.path());

  auto skipped = batches.skipped();
  if (held_out) {
    skipped.insert(skipped.end(), held_out->skipped().begin(), held_out->skipped().end());
  }
  auto notes = evaluate::notes_on_inputs(setup.reader, skipped);
  watch(static_cast<double>(options.steps), static_cast<double>(options.steps), "writing");
  std::optional<WrittenTuned> written;
  if (options.rank > 0) {
    write_factors(options, setup, work.staged());
  } else {
    auto values = setup.fixed;
    values.insert(setup.trainable.leaves().begin(), setup.trainable.leaves().end());
    written = write_tuned(model, values, setup.head, work.staged());
    const auto side = output::copy_side_files(
        model, work.staged(), {kRecordFile, kLossesFile, output::kCardFile});
    for (const auto& file : side.left_out) {
      notes.push_back("not copied: " + file);
    }
  }
  fs::copy_file(work.path() / kLossesFile, work.staged() / kLossesFile);
  const auto record = describe_training(
      options, how, outcome,
      {.model = &model,
       .portions = &portions,
       .head = &setup.head,
       .trained = setup.trained(),
       .tensors = static_cast<int64_t>(setup.trainable.leaves().size()),
       .frozen = setup.choice.frozen,
       .written = written ? &*written : nullptr,
       .notes = notes});
  write_record(
      record, options.rank > 0 ? "peft" : output::library_of(model.location().family),
      work.staged());
  work.finish();
  return record;
}

}  // namespace theseus::train
