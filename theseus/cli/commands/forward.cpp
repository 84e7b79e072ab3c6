// theseus forward MODEL --inputs IN.safetensors --out OUT.safetensors

#include <filesystem>
#include <memory>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"
#include "theseus/cli/command.h"
#include "theseus/cli/model_options.h"
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
  ModelOptions model;
  std::string inputs;
  std::string out;
  bool taps = false;
  int64_t generate = 0;
  bool ignore_end = false;
  bool force = false;
};

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
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

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->model.add_path(app);
  app.add_option("--inputs", options->inputs, "safetensors file with the input tensors")
      ->required();
  app.add_option("--out", options->out, "safetensors file to write")->required();
  app.add_flag("--force", options->force, "replace a file that is there");
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
      .help = "run a model on given inputs and write what comes out", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
