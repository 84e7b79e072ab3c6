#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace theseus::cli {

// "; did you mean --memory?" for "--memroy" or "--memroy=2GB"; "" where the command has no option like it.
std::string suggested_option(const CLI::App& command, const std::string& given);

// What the command line of a command, `name` in words, lacks or has too much of, in one sentence.
std::string parse_error_text(
    const CLI::App& command, const std::string& name, const CLI::ParseError& error);

}  // namespace theseus::cli
