// theseus forward MODEL --inputs IN.safetensors --out OUT.safetensors

#include <filesystem>
#include <memory>
#include <unistd.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"
#include "theseus/cli/command.h"
#include "theseus/cli/model_options.h"
#include "theseus/cli/progress.h"
#include "theseus/model/generate.h"
#include "theseus/model/golden.h"

namespace theseus::cli::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTokens = 1'000'000;

struct Options {
  ModelOptions model;
  std::string inputs;
  std::string out;
  bool taps = false;
  int64_t generate = 0;
  bool ignore_end = false;
};

// Before hours of work, not after.
void check_output(const Options& options) {
  const fs::path out(options.out);
  require(out.has_filename(), "--out: '", options.out, "' names no file");
  const auto directory = out.has_parent_path() ? out.parent_path() : fs::path(".");
  require(fs::is_directory(directory), "--out: there is no directory ", directory.string());
  require(
      ::access(directory.c_str(), W_OK) == 0, "--out: no right to write in ", directory.string());
  require(!fs::is_directory(out), "--out: ", options.out, " is a directory; name a file in it");
  std::error_code ignored;
  require(!fs::equivalent(out, options.inputs, ignored), "--out is the same file as --inputs");
}

// A model must not be damaged by running it.
void check_model_is_kept(const Options& options, const model::Model& model) {
  auto files = model.checkpoint().files();
  files.push_back(model.location().config);
  for (const fs::path directory : {options.model.path, options.model.adapter}) {
    for (const char* name :
         {"model.safetensors.index.json", "pytorch_model.bin.index.json", "generation_config.json",
          "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"}) {
      files.push_back(directory / name);
    }
  }
  for (const auto& file : files) {
    std::error_code ignored;
    require(
        !fs::equivalent(options.out, file, ignored), "--out is the model's own file ",
        file.string());
  }
}

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  check_output(options);
  auto model = options.model.open();
  const auto batch = model::read_inputs(checkpoint::Checkpoint::open(options.inputs));
  check_model_is_kept(options, model);
  if (!options.model.adapter.empty()) {
    model.attach(update::read_adapter(options.model.adapter));
  }
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
    tensors["greedy"] = model::greedy(
        model, batch, {.new_tokens = options.generate, .ignore_end = options.ignore_end});
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
