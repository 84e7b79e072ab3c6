// theseus compare --source A --target B --setting NAME TUNED DATA --out DIR

#include "theseus/evaluate/compare.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/compare_text.h"
#include "theseus/cli/device_option.h"
#include "theseus/cli/draw_option.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/numbers.h"
#include "theseus/cli/progress.h"
#include "theseus/evaluate/compare_inputs.h"
#include "theseus/model/room.h"
#include "theseus/output/method_words.h"
#include "theseus/output/supervision.h"

namespace theseus::cli::commands {
namespace {

struct Options {
  const CLI::App* app = nullptr;
  theseus::evaluate::CompareOptions compare;
  std::vector<std::string> settings;
  std::string out, depth, draw, device = "cpu";
  std::optional<double> alpha;
  int64_t threads = 0;
  bool json = false;
  bool quiet = false;
};

// An option that would be ignored is a misunderstanding.
void require_effect(const CLI::App& app, const theseus::evaluate::CompareOptions& compare) {
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  for (const char* option : {"--to", "--step", "--validation"}) {
    require(
        !given("--alpha") || !given(option), option,
        " is for choosing a strength, and --alpha says it");
  }
  require(
      !given("--batches") || !given("--shots"),
      "--batches has no effect with --shots, which says how many examples are drawn");
  const auto& methods = compare.methods;
  const bool drawn = std::any_of(methods.begin(), methods.end(), [&](const auto& method) {
    return theseus::evaluate::uses_calibration(compare, method);
  });
  for (const char* option :
       {"--tokens", "--draw", "--batches", "--batch-size", "--shots", "--split"}) {
    require(
        drawn || !given(option), option,
        " has no effect: none of these methods looks at examples to make maps from");
  }
}

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  auto compare = options.compare;
  for (size_t i = 0; i + 2 < options.settings.size(); i += 3) {
    compare.settings.push_back(
        {options.settings[i], options.settings[i + 1], options.settings[i + 2], ""});
    for (size_t other = 0; other < i; other += 3) {
      require(
          options.settings[other] != options.settings[i], "--setting: two columns are called '",
          options.settings[i], "'");
    }
  }
  for (const auto& method : compare.methods) {
    if (method != theseus::evaluate::kNone && method != theseus::evaluate::kImitate) {
      auto job = options.compare.job;
      output::set_method(method, job);  // throws for what is none
      compare.job.labels = compare.job.labels || output::needs_labels(job);
    }
  }
  read_draw(*options.app, options.draw, compare.job.align.sampling);
  compare.job.align.depth =
      transport::parse_depth(options.depth.empty() ? "divided" : options.depth);
  require_effect(*options.app, compare);
  if (options.alpha) {
    compare.strengths = {.first = *options.alpha, .last = *options.alpha};
  }
  if (options.threads > 0) {
    at::set_num_threads(static_cast<int>(options.threads));
  }
  compare.evaluate.feed.threads = at::get_num_threads();
  compare.job.placement.device =
      device_of(options.device, options.quiet, model::room_for(compare.job.target, at::kFloat));
  compare.job.version = THESEUS_VERSION;
  say_when_interrupted(
      "interrupted (cells that are measured are kept in " + options.out +
      "/cells: the same command goes on from there)");
  JobProgress progress(options.quiet);
  const auto record = theseus::evaluate::compare(
      compare, options.out, [&](int64_t done, int64_t all, const std::string& doing) {
        progress(static_cast<double>(done), static_cast<double>(all), doing);
      });
  progress.finish();
  fmt::print(
      "{}", options.json ? record.dump(2) + "\n" : without_controls(compare_markdown(record)));
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->app = &app;
  auto& compare = options->compare;
  app.add_option("--source", compare.job.source, "the old base model")->required();
  app.add_option("--target", compare.job.target, "the new base model")->required();
  app.add_option("--setting", options->settings, "a column: NAME TUNED DATA; may be repeated")
      ->required()
      ->type_size(3)
      ->allow_extra_args(false)
      ->expected(-1);
  compare.methods = {"none", "pad", "procrustes"};
  app.add_option(
         "--methods", compare.methods,
         "rows, as in none,procrustes,stream,procrustes:center:whiten=0.2,imitate; "
         "docs/transport.md lists them and their options. Those that learn from labels take those "
         "of DATA")
      ->delimiter(',');
  app.add_option("--batches", compare.batches, "B-shot: a row for each, as in 1,5,10")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  add_draw(app, options->draw);
  app.add_option("--batch-size", compare.job.align.sampling.batch_size, "sequences at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option(
         "--shots", compare.job.shots, "K-shot: make maps from so many examples of each class")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--split", compare.job.split, "of what maps are made from")->check(split_error);
  app.add_option("--tokens", compare.job.align.tokens, "which tokens pair");
  app.add_option("--depth", options->depth, "divided (default), whole or stretch");
  app.add_option("--alpha", options->alpha, "this strength, instead of choosing one")
      ->check(strength_error);
  app.add_option(
         "--validation", compare.validation,
         "split for alpha (default: val, else part of what is not test)")
      ->check(split_error);
  app.add_option(
         "--test", compare.test, "split for the table (default: test, else val, else a part)")
      ->check(split_error);
  app.add_option(
         "--familiar", compare.familiar,
         "of imitate: examples that both bases read well, without labels")
      ->type_name("DATA");
  app.add_option("--task", compare.evaluate.task, "as of 'theseus evaluate'");
  app.add_option(
      "--template", compare.evaluate.settings.templates,
      "zero-shot prompt, {c} is the class; may be repeated");
  app.add_option(
      "--wording", compare.evaluate.wording,
      "text from fields, as in 'premise: {premise}', for maps and measuring");
  app.add_option("--second", compare.evaluate.second, "the second text of a pair");
  app.add_option("--answer", compare.evaluate.answer, "what the model should write");
  app.add_option(
         "--pack", compare.job.pack,
         "of causal models: texts end to end in rows of so many tokens, for maps and perplexity")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
  app.add_option("--limit", compare.evaluate.limit, "examples to measure on (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option(
         "--training-limit", compare.evaluate.training_limit, "examples that a probe learns from")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--to", compare.strengths.last, "largest alpha")
      ->capture_default_str()
      ->check(strength_error);
  app.add_option("--step", compare.strengths.step, "between alphas")
      ->capture_default_str()
      ->check(strength_error);
  add_seed(app, compare.job.align.sampling.seed, "of the examples that maps are made from");
  app.add_option("--out", options->out, "directory for the table and what it rests on")->required();
  add_device(app, options->device);
  app.add_option("--threads", options->threads, "processor threads (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  app.add_flag("--fresh", compare.fresh, "start over; replace an earlier comparison");
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag("--quiet", options->quiet, "no progress");
  return [options] { return run(*options); };
}

}  // namespace

const Command& compare() {
  static const Command command = {
      .help = "methods side by side on the same fine-tunes and examples", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
