// theseus run RECIPE.yaml: a command with its options in a file

#include <algorithm>
#include <memory>

#include "theseus/base/error.h"
#include "theseus/cli/command.h"
#include "theseus/cli/recipe.h"

namespace theseus::cli::commands {
namespace {

int run_recipe(const std::string& path) {
  auto words = read_recipe(path);
  const auto name = words.front();
  require(name != "run", "a recipe cannot run a recipe");
  const auto& command = find_plugin(all_commands(), "command", name);
  CLI::App app("", name);
  const auto action = command.add(app);
  words.erase(words.begin());
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    throw InputError(c10::str(path, ": ", error.what()));
  }
  return action();
}

std::function<int()> add(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  app.add_option("recipe", *path, "YAML file: 'command: transport' and an option a line")
      ->required()
      ->type_name("FILE");
  return [path] { return run_recipe(*path); };
}

}  // namespace

const Command& run() {
  static const Command command = {
      .help = "run a command whose options are in a recipe", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
