#pragma once

#include <string>
#include <vector>

#include "theseus/cli/recipe.h"

namespace theseus::cli {

// Options and commands as they were once called. They go on working, and no help names them.

// `words` is a command line without the program's name. Returns it in today's words, and adds a
// note for each that it replaces.
std::vector<std::string> with_new_words(
    const std::vector<std::string>& words, std::vector<std::string>& notes);

// Likewise for what a recipe says after `command`, and for `more`, the options that were typed
// beside it and replace the recipe's. These have the number 0.
std::vector<RecipeLine> with_new_words(
    const std::string& command,
    const std::vector<RecipeLine>& recipe,
    const std::vector<std::string>& more,
    std::vector<std::string>& notes);

// Today's name of a command.
std::string new_command(const std::string& command, std::vector<std::string>& notes);

// Prints them on standard error, unless `words` have --quiet. Of several processes the first does.
void print_notes(const std::vector<std::string>& notes, const std::vector<std::string>& words);

}  // namespace theseus::cli
