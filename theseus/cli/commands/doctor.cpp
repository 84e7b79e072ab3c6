// theseus doctor: what this machine can do, and what a bug report needs.

#include <memory>

#include <ATen/Version.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/machine_record.h"
#include "theseus/machine/processor.h"

namespace theseus::cli::commands {
namespace {

struct Options {
  bool json = false, cpuid = false, libtorch = false;
};

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
  if (options.cpuid) {
    fmt::print("{}", machine::cpuid_text(machine::read_cpuid()));
    return kDone;
  }
  const auto record = machine_record();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kDone;
  }
  fmt::print("{}", without_controls(machine_text(record)));
  if (options.libtorch) {
    fmt::print("\n{}", at::show_config());
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag("--libtorch", options->libtorch, "also print how this libtorch was built");
  app.add_flag(
      "--cpuid", options->cpuid, "print what the processor says of itself, and nothing else");
  return [options] { return run(*options); };
}

}  // namespace

const Command& doctor() {
  static const Command command = {
      .help = "say what this machine can do and what slows it down; what a bug report needs",
      .add = add};
  return command;
}

}  // namespace theseus::cli::commands
