// theseus run RECIPE.yaml: a command with its options in a file

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/job_command.h"
#include "theseus/cli/old_words.h"
#include "theseus/cli/recipe.h"
#include "theseus/cli/suggested_option.h"
#include "theseus/machine/suggest.h"

namespace theseus::cli::commands {
namespace {

// What YAML has for true and false.
bool is_switch(const std::string& value) {
  auto word = value;
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  static const std::set<std::string> kWords = {"true", "false", "yes", "no", "on", "off"};
  return kWords.contains(word);
}

// The recipe's lines as words of a command line; `more` comes from ours and takes precedence.
std::vector<std::string> words_of(
    const std::string& path,
    const CLI::App& app,
    const std::vector<std::string>& more,
    std::vector<std::string>& notes) {
  std::vector<std::string> words;
  auto lines = read_recipe(path);
  lines.erase(lines.begin());
  lines = with_new_words(app.get_name(), lines, more, notes);
  for (const auto& line : lines) {
    if (line.number == 0) {  // not of the recipe
      words.insert(words.end(), line.name.empty() ? 0 : 1, "--" + line.name);
      words.push_back(line.value);
      continue;
    }
    const auto option = "--" + line.name;
    require(
        app.get_option_no_throw(option) != nullptr && line.name != "help", path, ", line ",
        line.number, ": ", app.get_name(), " has no option '", line.name, "'",
        suggested_option(app, option), "; 'theseus ", app.get_name(), " --help' lists them");
    const auto same = std::count_if(lines.begin(), lines.end(), [&](const auto& other) {
      return other.number > 0 && other.name == line.name;
    });
    require(
        same == 1 || app.get_option(option)->get_expected_max() > 1, path, ", line ", line.number,
        ": ", line.name, " must have one value");
    require(
        app.get_option(option)->get_expected_max() > 0 || is_switch(line.value), path, ", line ",
        line.number, ": ", line.name, " is '", printable(line.value, 80),
        "'; expected true or false");
    words.push_back(option + "=" + line.value);
  }
  print_notes(notes, words);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  return words;
}

int run_recipe(const std::string& path, const std::vector<std::string>& more) {
  std::vector<std::string> notes;
  const auto name = new_command(read_recipe(path).front().value, notes);
  require(name != "run", path, ": a recipe cannot run a recipe");
  const auto& command = with_context("reading the recipe " + path, [&]() -> const Command& {
    std::string known;
    for (const auto& plugin : all_commands()) {
      known.append(" ").append(plugin.name);
      if (plugin.name == name) {
        return *plugin.object;
      }
    }
    throw InputError(c10::str(
        "unknown command '", printable(name), "'; commands:", known,
        machine::did_you_mean(name, known)));
  });
  if (!command.several) {
    require_one_process("theseus " + name);
  }
  CLI::App app("", name);
  const auto action = command.add(app);
  auto words = words_of(path, app, more, notes);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    throw InputError(c10::str(path, ": ", parse_error_text(app, "theseus " + name, error)));
  }
  return action();
}

std::function<int()> add(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  app.add_option("recipe", *path, "YAML file: 'command: transport' and an option a line")
      ->required()
      ->type_name("FILE");
  app.allow_extras();
  app.footer(
      "More options, such as --out DIR, go to the recipe's command and replace those in it.");
  return [path, &app] { return run_recipe(*path, app.remaining()); };
}

}  // namespace

const Command& run() {
  static const Command command = {
      .help = "run a command whose options are in a recipe", .add = add, .several = true};
  return command;
}

}  // namespace theseus::cli::commands
