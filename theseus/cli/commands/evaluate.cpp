// theseus evaluate MODEL --data DATA

#include "theseus/evaluate/evaluate.h"

#include <memory>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/evaluate_options.h"
#include "theseus/cli/model_options.h"
#include "theseus/cli/progress.h"
#include "theseus/output/named_base.h"
#include "theseus/output/sentence_head.h"

namespace theseus::cli::commands {
namespace {

struct Options {
  ModelOptions model;
  EvaluateOptions evaluate;
  std::string head, alignment;
  bool json = false;
  bool quiet = false;
};

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  auto how = options.evaluate.read();
  require(
      options.alignment.empty() || !options.head.empty(),
      "--alignment is what --head-from is carried through, and there is no --head-from");
  auto model = options.model.open(options.quiet);
  if (!options.model.adapter.empty()) {
    model.attach(update::read_adapter(options.model.adapter));
    output::take_sentence_head(options.model.adapter, model);
  }
  JobProgress progress(options.quiet);
  const auto watch = [&](int64_t done, int64_t all, const std::string& doing) {
    progress(static_cast<double>(done), static_cast<double>(all), doing);
  };
  take_head(options.head, options.alignment, model, how, watch);
  auto record = theseus::evaluate::evaluate(model, how, watch);
  progress.finish();
  const auto other = options.model.adapter.empty()
                         ? std::string()
                         : output::note_on_another_base(options.model.adapter, model);
  if (!other.empty()) {
    record["notes"].push_back(other);
  }
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", without_controls(score_text(record)));
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->model.add_path(app, ",--model");
  options->model.add_running(app);
  options->evaluate.add(app);
  app.add_option("--head-from", options->head, kHeadHelp)->type_name("MODEL");
  app.add_option(
         "--alignment", options->alignment, "of --head-from: maps from its base onto this model")
      ->type_name("DIR");
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag("--quiet", options->quiet, "no progress");
  return [options] { return run(*options); };
}

}  // namespace

const Command& evaluate() {
  static const Command command = {
      .help = "measure a model on labelled images or on text", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
