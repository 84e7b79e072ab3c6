// theseus imitate

#include <memory>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/device_option.h"
#include "theseus/cli/draw_option.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/numbers.h"
#include "theseus/cli/progress.h"
#include "theseus/cli/recipe.h"
#include "theseus/cli/summary.h"
#include "theseus/output/imitate_job.h"
#include "theseus/output/named_base.h"

namespace theseus::cli::commands {
namespace {

struct Options {
  const CLI::App* app = nullptr;
  output::ImitateJob given;
  std::string device = "cpu", output_dtype = "auto", draw;
  int64_t threads = 0;
  bool json = false, quiet = false;
};

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  auto given = options.given;
  if (options.threads > 0) {
    at::set_num_threads(static_cast<int>(options.threads));
  }
  given.job.placement.device = device_of(options.device, options.quiet);
  given.job.output_dtype = output::parse_output_dtype(options.output_dtype);
  read_draw(*options.app, options.draw, given.job.align.sampling);
  given.job.version = THESEUS_VERSION;
  given.job.words = given_options(*options.app);
  if (given.job.source.empty()) {
    const auto named = output::named_base(given.job.tuned);
    given.job.source = named.path;
    given.job.source_note = named.note;
    given.job.words["source"] = std::filesystem::absolute(named.path).lexically_normal().string();
  }
  given.job.recipe = recipe_of(given.job.words);
  given.fit.tokens = given.job.align.tokens;
  say_what_is_kept({given.job.out});
  JobProgress progress(options.quiet);
  const auto record = output::imitate_job(
      given,
      [&](double done, double all, const std::string& doing) { progress(done, all, doing); });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    for (const auto& layer : record.at("layers")) {
      fmt::print(
          "{:<40} change wanted {:.3f} of the stream, {:.3f} of its square is there\n",
          without_controls(layer.at("module").get<std::string>()), layer.at("wanted").get<double>(),
          layer.at("share").get<double>());
    }
    for (const auto& note : record.at("notes")) {
      fmt::print("note: {}\n", without_controls(note.get<std::string>()));
    }
    fmt::print("written to {}\n", given.job.out.string());
    fmt::print("{}", without_controls(history_text(record)));
  }
  return kDone;
}

void add_fit(CLI::App& app, Options& options) {
  auto& fit = options.given.fit;
  app.add_option("--map-ridge", fit.map_ridge, "of the map, relative to a feature's mean variance")
      ->capture_default_str()
      ->check(number_from(0, 1e6));
  app.add_option("--fit-ridge", fit.fit_ridge, "of the layers, relative to their mean square input")
      ->capture_default_str()
      ->check(number_from(0, 1e6));
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->app = &app;
  auto& job = options->given.job;
  job.write = "model";
  app.add_option(
         "--source", job.source,
         "the old base model (default: the directory that the tuned model names as its base)")
      ->type_name("MODEL");
  app.add_option("--tuned", job.tuned, "the tuned old model: directory, state dict or PEFT adapter")
      ->required()
      ->type_name("PATH");
  app.add_option("--target", job.target, "the new base model")->required()->type_name("MODEL");
  app.add_option("--examples", job.calibration, "examples of the new kind, without labels")
      ->required()
      ->type_name("DATA");
  app.add_option(
         "--familiar", options->given.familiar,
         "examples that both base models read well, without labels, drawn in the same way")
      ->type_name("DATA");
  app.add_option("--split", job.split, "of the examples (default: train where there is one)")
      ->check(split_error);
  app.add_option("--tokens", job.align.tokens, "which tokens pair, as in 'theseus transport'");
  add_draw(app, options->draw);
  app.add_option("--batches", job.align.sampling.batches, "draw so many batches, instead of --draw")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--batch-size", job.align.sampling.batch_size, "sequences at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add_seed(app, job.align.sampling.seed, "of what is drawn");
  add_fit(app, *options);
  app.add_option("--alpha", job.alpha, "strength of the change")
      ->capture_default_str()
      ->check(output_strength_error);
  app.add_option("--write", job.write, "model or update")->capture_default_str();
  app.add_option("--output-dtype", options->output_dtype, kOutputDtypeHelp)->capture_default_str();
  app.add_option("--out", job.out, "directory to write")->required()->type_name("DIR");
  app.add_flag("--fresh", job.fresh, "start over; replace an earlier output of theseus");
  app.add_option(
         "--save-every", job.save_every,
         "seconds between saves, from which the same command goes on after an interruption")
      ->capture_default_str()
      ->check(seconds_error);
  add_device(app, options->device);
  app.add_option("--threads", options->threads, "processor threads (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag("--quiet", options->quiet, "print nothing but errors");
  return [options] { return run(*options); };
}

}  // namespace

const Command& imitate() {
  static const Command command = {
      .help = "fit a base model to what fine-tuning did to another, without labels", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
