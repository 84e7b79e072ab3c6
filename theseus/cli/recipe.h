#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace theseus::cli {

// The options that were given to a command, by their long names: what decides its result. One that was given
// more than once has a list. How it prints and where it writes is left out.
nlohmann::ordered_json given_options(const CLI::App& command);

// A recipe that repeats the command with the same result: YAML with `command` and an option a line.
std::string recipe_of(const CLI::App& command);
// Likewise, of what given_options gave.
std::string recipe_of(const nlohmann::ordered_json& given);

struct RecipeLine {
  int number = 0;  // in the file, from 1
  std::string name, value;
};

// What a recipe says, the command first; of a list a line for each value. Relative
// paths are those from the recipe's folder where something lies there. Throws InputError with the line when it is not a flat map of
// options or names no command.
std::vector<RecipeLine> read_recipe(const std::filesystem::path& path);

}  // namespace theseus::cli
