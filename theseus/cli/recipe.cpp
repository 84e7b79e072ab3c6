#include "theseus/cli/recipe.h"

#include <set>
#include <yaml-cpp/yaml.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"

namespace theseus::cli {
namespace {

constexpr int64_t kLongestRecipe = 1 << 20;
// Same result, other appearance.
const std::set<std::string> kNotOfTheResult = {"json", "quiet", "fresh", "out", "help", "every"};

std::string option_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

}  // namespace

nlohmann::ordered_json given_options(const CLI::App& command) {
  nlohmann::ordered_json given = {{"command", command.get_name()}};
  for (const auto* option : command.get_options()) {
    const auto name = option_name(*option);
    if (option->count() > 0 && !name.empty() && !kNotOfTheResult.contains(name)) {
      given[name] = option->get_expected_max() == 0 ? "true" : option->results().front();
    }
  }
  return given;
}

std::string recipe_of(const CLI::App& command) {
  YAML::Emitter yaml;
  yaml << YAML::BeginMap;
  yaml << YAML::Key << "command" << YAML::Value << command.get_name();
  for (const auto* option : command.get_options()) {
    const auto name = option_name(*option);
    if (option->count() == 0 || name.empty() || name == "help" || name == "fresh") {
      continue;
    }
    yaml << YAML::Key << name << YAML::Value;
    if (option->get_expected_max() == 0) {
      yaml << true;
    } else {
      yaml << option->results().front();
    }
  }
  yaml << YAML::EndMap;
  return std::string("# theseus run recipe.yaml\n") + yaml.c_str() + "\n";
}

std::vector<std::string> read_recipe(const std::filesystem::path& path) {
  return with_context("reading the recipe " + path.string(), [&] {
    const auto text = read_text_file(path, kLongestRecipe);
    YAML::Node recipe;
    try {
      recipe = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      throw InputError(c10::str("this is not YAML: ", error.what()));
    }
    require(recipe.IsMap(), "expected 'option: value' lines, with 'command: transport' among them");
    require(
        recipe["command"] && recipe["command"].IsScalar(),
        "it does not say which command it is for, as in 'command: transport'");
    std::vector<std::string> words = {recipe["command"].as<std::string>()};
    std::set<std::string> seen;
    for (const auto& item : recipe) {
      const auto line = item.first.Mark().line + 1;
      require(item.first.IsScalar(), "line ", line, ": an option must be a word");
      const auto name = item.first.as<std::string>();
      require(seen.insert(name).second, "line ", line, ": ", name, " is given twice");
      require(
          item.second.IsScalar() || item.second.IsNull(), "line ", line, ": ", name,
          " must have one value");
      if (name == "command" || item.second.IsNull()) {
        continue;
      }
      const auto value = item.second.as<std::string>();
      const bool plain = item.second.Tag() != "!";  // not in quotes
      if (plain && value == "true") {
        words.push_back("--" + name);
      } else if (!plain || value != "false") {
        words.push_back("--" + name + "=" + value);
      }
    }
    return words;
  });
}

}  // namespace theseus::cli
