#include "theseus/cli/recipe.h"

#include <algorithm>
#include <set>
#include <yaml-cpp/yaml.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/data/splits.h"
#include "theseus/machine/suggest.h"
#include "theseus/output/work_directory.h"

namespace theseus::cli {
namespace {

constexpr int64_t kLongestRecipe = 1 << 20;
// Same result, other appearance.
const std::set<std::string> kNotOfTheResult = {"json", "quiet", "fresh",      "out",
                                               "help", "every", "save-every", "resume"};

// Behind NAME: of NAME:PATH.
size_t begin_of_path(const std::string& text) {
  const auto colon = text.find(':');
  return colon == std::string::npos ? 0 : colon + 1;
}

// Where the command ran is not where its recipe will be. A split's name is no path, even where a file has it.
std::string value_text(const std::string& name, const std::string& text) {
  if (!output::is_input(name) || !data::split_meant(text).empty()) {
    return text;
  }
  std::error_code ignored;
  const auto begin = std::filesystem::exists(text, ignored) ? 0 : begin_of_path(text);
  const auto path = text.substr(begin);
  return std::filesystem::exists(path, ignored)
             ? text.substr(0, begin) + std::filesystem::absolute(path).lexically_normal().string()
             : text;
}

// A relative path of a recipe that somebody wrote is one from where the recipe lies, if something is there; else one
// from where the command runs.
std::string from_folder(
    const std::filesystem::path& folder, const std::string& name, const std::string& text) {
  if (!output::is_input(name) || !data::split_meant(text).empty() || text.empty()) {
    return text;
  }
  std::error_code ignored;
  const auto begin = begin_of_path(text);
  const auto there = folder / text.substr(begin);
  return std::filesystem::exists(folder / text, ignored) ? (folder / text).string()
         : begin > 0 && std::filesystem::exists(there, ignored)
             ? text.substr(0, begin) + there.string()
             : text;
}

std::string option_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

}  // namespace

nlohmann::ordered_json given_options(const CLI::App& command) {
  nlohmann::ordered_json given = {{"command", command.get_name()}};
  for (const auto* option : command.get_options()) {
    const auto name = option_name(*option);
    if (option->count() == 0 || name.empty() || kNotOfTheResult.contains(name)) {
      continue;
    }
    if (option->get_expected_max() > 0) {
      auto all = nlohmann::ordered_json::array();
      for (const auto& text : option->results()) {
        all.push_back(value_text(name, text));
      }
      given[name] = all.size() == 1 ? all.front() : all;
    } else if (option->as<bool>()) {  // --partial=false is as if it were not there
      given[name] = "true";
    }
  }
  return given;
}

std::string recipe_of(const CLI::App& command) {
  return recipe_of(given_options(command));
}

std::string recipe_of(const nlohmann::ordered_json& given) {
  YAML::Emitter yaml;
  yaml << YAML::BeginMap;
  for (const auto& [name, value] : given.items()) {
    yaml << YAML::Key << name << YAML::Value;
    if (value.is_array()) {
      yaml << value.get<std::vector<std::string>>();
    } else {
      yaml << value.get<std::string>();
    }
  }
  yaml << YAML::EndMap;
  return std::string("# theseus run recipe.yaml --out DIR\n") + yaml.c_str() + "\n";
}

std::vector<RecipeLine> read_recipe(const std::filesystem::path& path) {
  return with_context("reading the recipe " + path.string(), [&] {
    const auto text = read_text_file(path, kLongestRecipe);
    YAML::Node recipe;
    try {
      recipe = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      throw InputError(c10::str("this is not YAML: ", error.what()));
    }
    require(recipe.IsMap(), "expected 'option: value' lines, with 'command: transport' among them");
    std::vector<RecipeLine> lines;
    std::set<std::string> seen;
    for (const auto& item : recipe) {
      const auto number = item.first.Mark().line + 1;
      require(item.first.IsScalar(), "line ", number, ": an option must be a word");
      const auto name = item.first.as<std::string>();
      require(seen.insert(name).second, "line ", number, ": ", name, " is given twice");
      const bool several = item.second.IsSequence() && item.second.size() > 0;
      for (size_t i = 0; i < (several ? item.second.size() : 1); ++i) {
        const auto value = several ? item.second[i] : item.second;
        require(value.IsScalar(), "line ", number, ": ", name, " must have one value");
        lines.push_back(
            {number, name, from_folder(path.parent_path(), name, value.as<std::string>())});
      }
    }
    const auto command = std::find_if(
        lines.begin(), lines.end(), [](const auto& line) { return line.name == "command"; });
    const auto near = machine::closest("command", {seen.begin(), seen.end()});
    require(
        command != lines.end(),
        "it does not say which command it is for, as in 'command: transport'",
        near.empty() ? "" : "; '" + near + "' looks like 'command' misspelt");
    std::rotate(lines.begin(), command, command + 1);
    return lines;
  });
}

}  // namespace theseus::cli
