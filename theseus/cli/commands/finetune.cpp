// theseus finetune --model MODEL --data DATA --out DIR

#include "theseus/train/finetune.h"

#include <memory>

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/finetune_options.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/progress.h"

namespace theseus::cli::commands {
namespace {

struct Options {
  FinetuneOptions training;
  bool json = false;
  bool quiet = false;
};

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;  // but where they are asked for
  const auto how = options.training.read(options.quiet);
  say_what_is_kept({how.out});
  JobProgress progress(options.quiet);
  const auto record = train::finetune(
      how, [&](double done, double all, const std::string& doing) { progress(done, all, doing); });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    fmt::print("{}", without_controls(finetune_text(record, how.out.string())));
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->training.add(app);
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag("--quiet", options->quiet, "no progress");
  return [options] { return run(*options); };
}

}  // namespace

const Command& finetune() {
  static const Command command = {
      .help = "train a model, or a LoRA adapter for it, on labelled images or on text", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
