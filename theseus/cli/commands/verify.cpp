// theseus verify MODEL --golden FILE

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/model_options.h"
#include "theseus/cli/numbers.h"
#include "theseus/model/golden.h"

namespace theseus::cli::commands {
namespace {

struct Options {
  ModelOptions model;
  std::string golden;
  double tolerance = 1e-5;
};

void print_row(const model::Comparison& row) {
  const auto error = row.problem.empty() ? fmt::format("{:.2e}", row.error) : row.problem;
  fmt::print("{:<6} {:<60} {}\n", row.passed ? "ok" : "WRONG", without_controls(row.name), error);
}

int run(const Options& options) {
  const c10::NoGradGuard no_gradients;
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
  return wrong == 0 ? kDone : kNoTrustworthyNumber;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->model.add_path(app);
  app.add_option(
         "--golden", options->golden,
         "safetensors file with input/NAME and expect/NAME, in/MODULE, out/MODULE")
      ->required();
  options->model.add_running(app);
  app.add_option("--tolerance", options->tolerance, "largest relative error to accept")
      ->capture_default_str()
      ->check(number_from(0, 1));
  return [options] { return run(*options); };
}

}  // namespace

const Command& verify() {
  static const Command command = {
      .help = "compare a model's outputs with those another library recorded", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
