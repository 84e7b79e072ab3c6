// theseus sweep TARGET --update DIR --data DATA, or with --alignment PAIR --tuned MODEL

#include "theseus/evaluate/sweep.h"

#include <filesystem>
#include <memory>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/evaluate_options.h"
#include "theseus/cli/model_options.h"
#include "theseus/cli/numbers.h"
#include "theseus/cli/output_path.h"
#include "theseus/cli/progress.h"
#include "theseus/cli/sweep_text.h"
#include "theseus/output/sentence_head.h"

namespace theseus::cli::commands {
namespace {

namespace fs = std::filesystem;

struct Options {
  const CLI::App* app = nullptr;
  ModelOptions model;
  EvaluateOptions evaluate;
  theseus::evaluate::Strengths strengths;
  std::string update, alignment, tuned, source, head, out;
  std::vector<std::string> scales;
  bool fresh = false;
  bool json = false;
  bool quiet = false;
};

theseus::evaluate::Update find_update(const Options& options, const model::Model& model) {
  if (!options.update.empty()) {
    return theseus::evaluate::read_update(options.update, model);
  }
  require(
      !options.alignment.empty() && !options.tuned.empty(),
      "give --update, or --alignment and --tuned");
  output::JobOptions job{
      .source = options.source,
      .tuned = options.tuned,
      .target = options.model.path,
      .alignment = options.alignment};
  job.version = THESEUS_VERSION;
  return theseus::evaluate::carry_update(job, model);
}

// An option that would be ignored is a misunderstanding.
void require_effect(const Options& options) {
  const auto given = [&](const char* option) { return options.app->count(option) > 0; };
  require(
      options.update.empty() || !given("--tuned"),
      "--tuned has no effect with --update, which is carried already");
  require(
      options.update.empty() || !given("--alignment") || given("--head-from"),
      "--alignment has no effect with --update, which is carried already, and without --head-from");
  require(
      !given("--source") || given("--alignment"),
      "--source has no effect without --alignment, which it is for");
}

nlohmann::ordered_json measured(const Options& options, const theseus::evaluate::Watch& watch) {
  auto how = options.evaluate.read();
  require_effect(options);
  auto model = options.model.open(options.quiet);
  auto update = find_update(options, model);
  theseus::evaluate::scale(update, options.scales);
  take_head(options.head, options.alignment, model, how, watch);
  if (options.head.empty() && !options.update.empty()) {
    output::take_sentence_head(options.update, model);  // one that came with the update
  }
  return theseus::evaluate::sweep(model, update, how, options.strengths, watch);
}

// Where the update is, or what it was carried from and through.
void add_update(const Options& options, nlohmann::ordered_json& record) {
  for (const auto& [name, word] :
       {std::pair("update", &options.update), std::pair("alignment", &options.alignment),
        std::pair("tuned", &options.tuned)}) {
    if (!word->empty()) {
      record[name] = *word;
    }
  }
}

// An earlier curve may be replaced when --fresh says so, and what is no curve never.
void require_replaceable(const Options& options) {
  std::error_code ignored;
  if (!fs::is_regular_file(options.out, ignored)) {
    return;
  }
  constexpr int64_t kLongest = 64 << 20;
  const auto found = nlohmann::json::parse(
      static_cast<int64_t>(fs::file_size(options.out, ignored)) < kLongest
          ? read_text_file(options.out, kLongest)
          : "",
      nullptr, /*allow_exceptions=*/false);
  require(
      found.is_object() && found.value("kind", "") == "sweep", "--out: ", options.out,
      " is there and is no curve of 'theseus sweep'; remove it, or give another name");
  require(
      options.fresh, "--out: ", options.out, " holds an earlier curve, of the model ",
      found.value("model", "unknown"), " on ", found.value("data", "unknown"),
      "; give another name, or --fresh to replace it");
}

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  if (!options.out.empty()) {
    check_writable(options.out);
    require_replaceable(options);
  }
  JobProgress progress(options.quiet);
  auto record = measured(options, [&](int64_t done, int64_t all, const std::string& doing) {
    progress(static_cast<double>(done), static_cast<double>(all), doing);
  });
  progress.finish();
  add_update(options, record);
  const auto text = record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (!options.out.empty()) {
    AtomicFile file(options.out);
    file.append(text);
    file.commit();
  }
  fmt::print("{}", options.json ? text : without_controls(curve_text(record)));
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->app = &app;
  options->model.add_path(app, ",--target");
  options->model.add_running(app);
  app.add_option(
      "--update", options->update, "what 'transport --write update' wrote for this model; or");
  app.add_option("--alignment", options->alignment, "maps onto this model, and");
  app.add_option("--tuned", options->tuned, "the tuned old model whose change they carry");
  app.add_option("--source", options->source, "the old base model, if it has moved since");
  app.add_option("--head-from", options->head, kHeadHelp)->type_name("MODEL");
  app.add_option(
      "--scale", options->scales,
      "WORDS=FACTOR: also scale what has WORDS in its name; repeatable");
  options->evaluate.add(app);
  app.get_option("--split")->description(
      "train, val or test (default: val where there is one, else test)");
  app.add_option("--from", options->strengths.first, "smallest strength")
      ->capture_default_str()
      ->check(strength_error);
  app.add_option("--to", options->strengths.last, "largest strength")
      ->capture_default_str()
      ->check(strength_error);
  app.add_option("--step", options->strengths.step, "between strengths")
      ->capture_default_str()
      ->check(strength_error);
  app.add_option(
         "--patience", options->strengths.patience, "strengths without a gain before it ends")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option("--out", options->out, "also write the curve as JSON, for 'theseus report'");
  app.add_flag("--fresh", options->fresh, "replace an earlier curve at --out");
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag("--quiet", options->quiet, "no progress");
  return [options] { return run(*options); };
}

}  // namespace

const Command& sweep() {
  static const Command command = {
      .help = "find how strong an update should be, on validation examples", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
