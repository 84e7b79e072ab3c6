#include "theseus/cli/transport_options.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/cli/device_option.h"
#include "theseus/cli/draw_option.h"
#include "theseus/cli/numbers.h"
#include "theseus/cli/recipe.h"
#include "theseus/machine/suggest.h"
#include "theseus/maps/method.h"
#include "theseus/output/method_words.h"
#include "theseus/output/named_base.h"
#include "theseus/output/supervision.h"
#include "theseus/stats/matcher.h"

namespace theseus::cli {
namespace {

template <class Value>
Value chosen(
    const char* option,
    const std::string& word,
    const std::vector<std::pair<std::string, Value>>& choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == word) {
      return value;
    }
    known.append(name.empty() ? "" : " ").append(name);
  }
  throw InputError(c10::str(
      "--", option, ": '", word, "' is none of:", known, machine::did_you_mean(word, known)));
}

std::string matcher_words() {
  std::string words;
  for (const auto& [name, matcher] : stats::all_matchers()) {
    words.append(words.empty() ? "" : ", ").append(name);
  }
  return words;
}

// Those that carry; the others are there to compare with, and docs/transport.md lists them.
std::string method_list() {
  std::string words;
  for (const auto& word : maps::method_words()) {
    if (maps::method(word).offered) {
      words.append(words.empty() ? "" : ", ").append(word);
    }
  }
  return words;
}

// Options that decide the maps, and so are not given with an alignment.
constexpr const char* kOfTheMaps[] = {
    "--examples", "--method", "--tokens", "--depth",      "--batches",   "--batch-size",
    "--memory",   "--split",  "--shots",  "--max-length", "--pack",      "--wording",
    "--second",   "--answer", "--dtype",  "--draw",       "--save-every"};

}  // namespace

void TransportOptions::add_examples(CLI::App& app) {
  app.add_option(
         "--examples", job_.calibration,
         "examples without labels: images or text as 'theseus evaluate --data' reads them, or a "
         "safetensors file with inputs for both models")
      ->type_name("DATA");
  app.add_option(
         "--split", job_.split,
         "of the examples: train, val or test, or a part (default: train where there is one)")
      ->check(split_error);
  app.add_option("--shots", job_.shots, "draw so many examples of each class")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--max-length", job_.longest, "tokens of a text (default: what the models take)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option(
         "--pack", job_.pack, "of causal models: texts end to end in rows of so many tokens")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
  app.add_option("--wording", job_.wording.first, "text from fields, as in 'premise: {premise}'");
  app.add_option("--second", job_.wording.second, "the second text of a pair");
  app.add_option("--answer", job_.wording.answer, "what the model should write");
}

// What learns from labels is for those commands that say so.
void TransportOptions::add_labels(CLI::App& app, For command) {
  if (command == For::kDiagnose) {
    return;
  }
  app.add_option(
         "--labelled", job_.labelled,
         "examples whose labels are used, for what learns from labels; given alone they are the "
         "--examples, too")
      ->type_name("DATA");
  app.add_option(
      "--template", template_,
      "with --labelled: a prompt for CLIP, {c} is the class (default: those of the data)");
  if (command != For::kAlign) {
    app.add_option(
        "--mask", mask_,
        "of what is carried, by the signs of the target's gradients: normal keeps entries that "
        "agree, force makes all agree");
    app.add_option("--vote", vote_, "whose signs: mean of the gradients, or majority of examples")
        ->capture_default_str();
  }
}

// Examples with labels serve as those without where there are no others.
void TransportOptions::read_examples(output::JobOptions& job) const {
  job.labels = !job.labelled.empty();
  if (job.calibration.empty() || job.calibration == job.labelled) {
    job.calibration = std::exchange(job.labelled, {});
  }
}

void TransportOptions::read_labels(output::JobOptions& job) const {
  const auto given = [&](const char* option) {
    const auto* found = app_->get_option_no_throw(option);
    return found != nullptr && found->count() > 0;
  };
  const auto& method = job.align.method;
  const bool labelled = app_->get_option_no_throw("--labelled") != nullptr;
  require(
      labelled || !output::needs_labels(job), "method ", method,
      " learns from labels, and this command compares activations alone; use procrustes");
  for (const auto& [option, word] : {std::pair("--mask", "mask"), std::pair("--vote", "vote")}) {
    require(
        !given(option) || method_.find(std::string(":") + word) == std::string::npos, option,
        " and the method ", method_, " both say the ", word, "; give one of the two");
  }
  job.mask = given("--mask") ? gradient::mask_of(mask_) : job.mask;
  job.vote = given("--vote") ? gradient::vote_of(vote_) : job.vote;
  require(
      !given("--vote") || output::mask_of(job) != gradient::Mask::kNone,
      "--vote has no effect without --mask");
  require(
      !job.labels || output::needs_labels(job), "--labelled has no effect with method ", method,
      "; it is for gradient-mask, gradient-output and --mask, and --examples is for the others");
  require(!given("--template") || job.labels, "--template has no effect without --labelled");
  if (!template_.empty()) {
    job.templates = {template_};
  }
  output::require_labels_allowed(job);
}

void TransportOptions::add_maps(CLI::App& app) {
  auto& align = job_.align;
  app.add_option(
         "--method", method_,
         "how the update gets there: " + method_list() +
             "; docs/transport.md lists their options, as in procrustes:center:whiten=0.2, and "
             "methods to compare with")
      ->capture_default_str();
  app.add_option(
      "--tokens", align.tokens,
      "which tokens of the two models pair: " + matcher_words() +
          " (default: grid for images; text, or offsets for two tokenizers)");
  app.add_option(
      "--depth", depth_,
      "where depths differ, blocks pair by similarity, and each gets the update divided among "
      "those it serves (default) or whole; or stretch the source");
}

void TransportOptions::add(CLI::App& app, For command) {
  app_ = &app;
  auto& align = job_.align;
  auto* source = app.add_option(
      "--source", job_.source,
      command == For::kAlign
          ? "the old base model"
          : "the old base model (default: the directory that the tuned model names as its base)");
  auto* target = app.add_option("--target", job_.target, "the new base model")->required();
  source->type_name("MODEL");
  target->type_name("MODEL");
  if (command != For::kAlign) {
    const bool several = command == For::kTransport;
    auto* tuned = app.add_option(
        "--tuned", tuned_,
        std::string("the tuned old model: directory, state dict or PEFT adapter") +
            (several ? "; with --alignment several, each carried to a directory in --out" : ""));
    tuned->type_name("PATH")->expected(1, several ? CLI::detail::expected_max_vector_size : 1);
    if (command != For::kPlan) {
      tuned->required();
    }
  }
  if (command == For::kPlan || command == For::kTransport) {
    app.add_option("--alignment", job_.alignment, "maps that 'theseus align' made of the two bases")
        ->type_name("DIR");
  }
  add_examples(app);
  add_labels(app, command);
  if (command == For::kAlign || command == For::kTransport) {
    app.add_option("--out", job_.out, "directory to write")->required()->type_name("DIR");
    app.add_flag("--fresh", job_.fresh, "start over; replace an earlier output of theseus");
    app.add_option(
           "--save-every", job_.save_every,
           "seconds between saves, from which the same command goes on after an interruption")
        ->capture_default_str()
        ->check(seconds_error);
  }
  add_maps(app);
  add_draw(app, draw_);
  app.add_option(
         "--batches", align.sampling.batches, "draw so many batches, instead of saying --draw")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--batch-size", align.sampling.batch_size, "sequences at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add_seed(app, align.sampling.seed, "of everything random");
  app.add_option(
         "--memory", memory_,
         "compute with at most this much, as in 8GB (default: what is free): sums, hidden states, "
         "maps and the weights in use; files that are mapped come and go in what else is free")
      ->check(size_error)
      ->type_name("SIZE");
  if (command != For::kAlign) {
    app.add_option("--norms", norms_, "gains of norms: diagonal, rotate or skip")
        ->capture_default_str();
    app.add_option(
           "--head", head_,
           "heads onto labels or vocabulary: leave the target's, or carry the source's where sizes "
           "agree")
        ->capture_default_str();
    app.add_flag("--partial", job_.partial, "leave behind what the examples do not reach");
    app.add_option("--alpha", job_.alpha, "strength of the update")
        ->capture_default_str()
        ->check(output_strength_error);
    app.add_option(
        "--write", job_.write,
        "model, update or adapter (default: adapter for an adapter, else model)");
    if (command != For::kDiagnose) {
      app.add_option(
             "--lora", job_.lora,
             "write an adapter of this rank, the nearest to what linear layers get")
          ->type_name("RANK")
          ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
      app.add_option("--output-dtype", output_dtype_, kOutputDtypeHelp)->capture_default_str();
    }
  }
  app.add_option(
         "--dtype", dtype_,
         "run the models in float32, bfloat16, float16 or, on a GPU, tf32; what is coarser moves "
         "weak directions, and the update by some percent")
      ->capture_default_str();
  add_device(app, device_);
  app.add_option("--threads", threads_, "processor threads (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  app.add_flag("--json", json, "print JSON");
  app.add_flag("--quiet", quiet, "print nothing but errors (and what --json asks for)");
  if (command == For::kPlan) {
    app.add_flag("--every", every, "a line for every parameter, not one for all blocks together");
  }
}

std::vector<output::JobOptions> TransportOptions::jobs() const {
  std::vector<output::JobOptions> jobs;
  if (tuned_.size() < 2) {
    return jobs;
  }
  const auto every = job();
  require(
      !every.alignment.empty(),
      "several --tuned go through one --alignment, which 'theseus align' makes");
  std::map<std::string, std::string> names;
  for (const auto& tuned : tuned_) {
    const auto normal = tuned.lexically_normal();
    const auto last = (normal.has_filename() ? normal : normal.parent_path()).filename();
    std::error_code ignored;
    const auto name = (std::filesystem::is_directory(tuned, ignored) ? last : last.stem()).string();
    const auto [other, first] = names.emplace(name, tuned.string());
    require(
        first && name != "." && name != "..", "--tuned: ", tuned.string(),
        first ? " has no name" : " and " + other->second + " would both be written to",
        first ? "" : " " + (every.out / name).string());
    auto job = every;
    job.tuned = tuned;
    job.out = every.out / name;
    job.words["tuned"] = std::filesystem::absolute(tuned).lexically_normal().string();
    job.recipe = recipe_of(job.words);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

output::JobOptions TransportOptions::job() const {
  auto job = job_;
  output::set_method(method_, job);
  read_examples(job);
  job.tuned = tuned_.empty() ? "" : tuned_.front();
  if (!job.alignment.empty()) {
    for (const char* option : kOfTheMaps) {
      const auto* given = app_->get_option_no_throw(option);
      require(
          given == nullptr || given->count() == 0, option,
          " belongs to the making of the maps; with --alignment "
          "they are made already");
    }
  } else {
    if (job.source.empty() && !job.tuned.empty()) {
      const auto named = output::named_base(job.tuned);
      job.source = named.path;
      job.source_note = named.note;
    }
    require(
        !job.source.empty(), app_->get_option_no_throw("--alignment") == nullptr
                                 ? "--source is required"
                                 : "--source is required (or an --alignment that knows it)");
    const auto& method = maps::method(job.align.method);
    require(
        !job.calibration.empty() || !method.needs.moments, "--examples is required: method ",
        job.align.method, " compares activations");
    require(
        app_->count("--dtype") == 0 || method.needs.moments, "--dtype has no effect with method ",
        job.align.method, ", which uses no activations");
    require(
        job.shots == 0 || job.align.sampling.batches == 0,
        "--batches has no effect with --shots, which says how many examples are drawn");
    read_draw(*app_, draw_, job.align.sampling);
    if (!job.align.tokens.empty()) {
      find_plugin(stats::all_matchers(), "matcher", job.align.tokens);
    }
  }
  read_labels(job);
  if (threads_ > 0) {
    at::set_num_threads(static_cast<int>(threads_));
  }
  job.placement.device = device_of(device_, quiet);
  job.placement.tf32 = dtype_ == "tf32";
  require(
      !job.placement.tf32 || job.placement.device.is_cuda(),
      "--dtype tf32 is for GPUs; use --device cuda");
  require(
      dtype_ == "float32" || !job.labels, "--dtype ", dtype_,
      " does not go with --labelled: gradients are taken in float32");
  job.placement.dtype = parse_compute_dtype(job.placement.tf32 ? "float32" : dtype_, "tf32");
  job.norms = chosen<transport::Norms>(
      "norms", norms_,
      {{"diagonal", transport::Norms::kDiagonal},
       {"rotate", transport::Norms::kRotate},
       {"skip", transport::Norms::kSkip}});
  job.align.depth = transport::parse_depth(depth_.empty() ? "divided" : depth_);
  require(
      head_ != "fit",
      "--head fit: fitting a head to the target's features is not there yet; use --head carry or "
      "--head leave, and 'theseus finetune --head new' trains one");
  job.heads = chosen<bool>("head", head_, {{"leave", false}, {"carry", true}});
  chosen<int>("write", job.write, {{"", 0}, {"model", 1}, {"update", 2}, {"adapter", 3}});
  job.output_dtype = output::parse_output_dtype(output_dtype_);
  job.align.memory = memory_.empty() ? 0 : parse_bytes(memory_);
  job.version = THESEUS_VERSION;
  job.words = given_options(*app_);
  if (!job.source_note.empty()) {  // where the recipe will be, that name may mean another directory
    job.words["source"] = std::filesystem::absolute(job.source).lexically_normal().string();
  }
  job.recipe = recipe_of(job.words);
  return job;
}

}  // namespace theseus::cli
