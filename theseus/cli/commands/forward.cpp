// theseus forward MODEL --inputs IN.safetensors --out OUT.safetensors, or --golden FILE

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/write.h"
#include "theseus/cli/command.h"
#include "theseus/cli/model_options.h"
#include "theseus/cli/numbers.h"
#include "theseus/cli/output_path.h"
#include "theseus/cli/progress.h"
#include "theseus/evaluate/head.h"
#include "theseus/model/generate.h"
#include "theseus/model/golden.h"
#include "theseus/output/sentence_head.h"

namespace theseus::cli::commands {
namespace {

constexpr int64_t kMostTokens = 1'000'000;

struct Options {
  const CLI::App* app = nullptr;
  ModelOptions model;
  std::string inputs;
  std::string out;
  std::string golden;
  double tolerance = 1e-5;
  bool taps = false;
  int64_t generate = 0;
  bool ignore_end = false;
  bool force = false;
};

void print_row(const model::Comparison& row) {
  const auto error = row.problem.empty() ? fmt::format("{:.2e}", row.error) : row.problem;
  fmt::print("{:<6} {:<60} {}\n", row.passed ? "ok" : "WRONG", without_controls(row.name), error);
}

int compare_with_golden(const Options& options) {
  require(std::isfinite(options.tolerance), "--tolerance is not a number");
  auto model = options.model.open();
  const auto golden = checkpoint::Checkpoint::open(options.golden);
  std::optional<update::Adapter> adapter;
  if (!options.model.adapter.empty()) {
    adapter = update::read_adapter(options.model.adapter);
  }
  const auto rows =
      model::compare_with_golden(model, golden, adapter ? &*adapter : nullptr, options.tolerance);
  double worst = 0;
  int64_t wrong = 0;
  for (const auto& row : rows) {
    print_row(row);
    worst = std::max(worst, row.error);
    wrong += row.passed ? 0 : 1;
  }
  fmt::print(
      "{} of {} tensors within {:g} of {}; largest relative error {:.2e}\n", rows.size() - wrong,
      rows.size(), options.tolerance, options.golden, worst);
  return wrong == 0 ? kDone : kAnswerIsNo;
}

int write_outputs(const Options& options) {
  check_writable(options.out);
  auto model = options.model.open();
  auto needed = model.checkpoint().files();
  needed.insert(needed.end(), {options.inputs, model.location().config});
  check_nothing_lost(options.out, needed, {options.model.path, options.model.adapter});
  std::error_code ignored;
  require(
      options.force || !std::filesystem::exists(options.out, ignored), "--out: ", options.out,
      " exists; choose another name, or --force to replace it");
  if (options.generate > 0) {
    model::require_can_generate(model);
  }
  const auto batch = model::read_inputs(checkpoint::Checkpoint::open(options.inputs));
  if (!options.model.adapter.empty()) {
    model.attach(update::read_adapter(options.model.adapter));
    output::take_sentence_head(options.model.adapter, model);
  }
  evaluate::take_own_head(model);
  model.set_walk(options.generate == 0);
  Progress progress("blocks");
  model.on_block([&](int64_t done, int64_t all) { progress.show(done, all); });
  model::RecordingTaps taps;
  auto tensors = model.forward(batch, options.taps ? &taps : nullptr);
  auto tapped = taps.tensors();
  const auto taps_count = tapped.size();
  tensors.merge(tapped);
  if (options.generate > 0) {
    model.on_block({});
    Progress tokens("tokens");
    tensors["greedy"] = model::greedy(
        model, batch,
        {.new_tokens = options.generate,
         .ignore_end = options.ignore_end,
         .watch = [&](int64_t done, int64_t all) { tokens.show(done, all); }});
  }
  progress.finish();
  checkpoint::write_safetensors(options.out, {tensors.begin(), tensors.end()});
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with("in/") && !name.starts_with("out/")) {
      fmt::print("{:<28} {}\n", name, c10::str(tensor.sizes()));
    }
  }
  if (options.taps) {
    fmt::print("{} tensors in/MODULE and out/MODULE\n", taps_count);
  }
  fmt::print("written to {}\n", options.out);
  return kDone;
}

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  const auto given = [&](const char* option) { return options.app->count(option) > 0; };
  const bool compared = given("--golden");
  require(!given("--tolerance") || compared, "--tolerance has no effect without --golden");
  for (const char* option :
       {"--inputs", "--out", "--force", "--taps", "--generate", "--ignore-eos"}) {
    require(
        !compared || !given(option), option,
        " has no effect with --golden, which holds the inputs, and whose outputs are compared");
  }
  for (const char* option : {"--inputs", "--out"}) {
    require(compared || given(option), option, " is required (or --golden, to compare outputs)");
  }
  return compared ? compare_with_golden(options) : write_outputs(options);
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->app = &app;
  options->model.add_path(app);
  app.add_option("--inputs", options->inputs, "safetensors file with the input tensors");
  app.add_option("--out", options->out, "safetensors file to write");
  app.add_flag("--force", options->force, "replace a file that is there");
  app.add_option(
      "--golden", options->golden,
      "instead: compare with what another library recorded, a safetensors file with input/NAME "
      "and expect/NAME, in/MODULE, out/MODULE; exit status 5 where they differ");
  app.add_option("--tolerance", options->tolerance, "of --golden: largest relative error to accept")
      ->capture_default_str()
      ->check(number_from(0, 1));
  options->model.add_running(app);
  app.add_flag("--taps", options->taps, "also write what enters and leaves every linear layer");
  auto* generate = app.add_option(
      "--generate", options->generate, "also generate this many tokens greedily, as 'greedy'");
  generate->check(CLI::Range(int64_t{1}, kMostTokens));
  app.add_flag("--ignore-eos", options->ignore_end, "generate past the end-of-sequence token")
      ->needs(generate);
  return [options] { return run(*options); };
}

}  // namespace

const Command& forward() {
  static const Command command = {
      .help = "run a model on given inputs, and write or compare what comes out", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
