// theseus inspect PATH [--json] [--parameters]

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/description.h"
#include "theseus/cli/model_options.h"
#include "theseus/output/sentence_head.h"

namespace theseus::cli::commands {
namespace {

namespace fs = std::filesystem;

struct Options {
  ModelOptions model;
  bool json = false;
  bool parameters = false;
};

// A file beside a config is that model's only when it is the file that tools would load with it:
// anything else in the directory is just tensors.
bool is_model(const Options& options) {
  const fs::path path(options.model.path);
  if (!options.model.config.empty() || !options.model.family.empty() || fs::is_directory(path)) {
    return true;
  }
  if (!model::has_config(path)) {
    return false;
  }
  const auto location = model::locate(path);
  const auto& family = find_plugin(model::all_families(), "model family", location.family);
  const auto directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code ignored;
  return fs::equivalent(checkpoint::find_weights(directory, family.weights), path, ignored);
}

// A classifier that lies beside an encoder, or beside an adapter of one.
void add_head(const fs::path& path, nlohmann::ordered_json& description) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return;
  }
  if (const auto head = output::find_sentence_head(path)) {
    description["head"] = {
        {"classes", head->weight.size(0)},
        {"width", head->weight.size(1)},
        {"names", head->classes}};
  }
}

nlohmann::ordered_json describe_path(const Options& options) {
  const fs::path path(options.model.path);
  if (fs::is_directory(path) && update::is_adapter(path) && options.model.family.empty()) {
    return describe(update::read_adapter(path));
  }
  if (is_model(options)) {
    return describe(options.model.open());
  }
  return describe(checkpoint::Checkpoint::open(path));
}

int run(const Options& options) {
  auto description = describe_path(options);
  add_head(options.model.path, description);
  if (options.json) {
    if (!options.parameters) {
      description.erase("parameters");
    }
    fmt::print("{}\n", description.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", without_controls(as_text(description, options.parameters)));
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->model.add_path(app);
  app.add_flag("--json", options->json, "print JSON");
  app.add_flag(
      "--parameters", options->parameters,
      "also every parameter with its shape and the space of each axis");
  return [options] { return run(*options); };
}

}  // namespace

const Command& inspect() {
  static const Command command = {.help = "say what a checkpoint or adapter is", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
