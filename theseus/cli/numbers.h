#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace theseus::cli {

constexpr const char* kOutputDtypeHelp =
    "what a model is stored in: auto (the base's own, or float32 where more than 5 % of the "
    "update's square would be lost to rounding), target (the base's own), float32, bfloat16 or "
    "float16";

// Checks of CLI11: an empty text, or what is wrong.

// "0.5". CLI11 would only say that it could not convert.
std::string number_error(const std::string& text);
// Of a number between two that are finite; CLI11 takes nan for one, and shows a limit by all its digits.
std::function<std::string(const std::string&)> number_from(double low, double high);
// From 0 to so many seconds as no job takes.
std::string seconds_error(const std::string& text);
// "8GB", "1.5 g", "512MiB": decimal as disks are sold, and binary with an i; capitals or not. Throws InputError.
int64_t parse_bytes(const std::string& text);
std::string size_error(const std::string& text);
// CLI11 would take -1 for the largest number there is.
std::string whole_number_error(const std::string& text);
// Of an update: a finite number, and small enough that weights of any size stay finite.
std::string strength_error(const std::string& text);
// The same, of a strength that makes an output: not 0 either.
std::string output_strength_error(const std::string& text);

// A split as users name it: train, val, test, or a part of one or of what there is. The library knows other words
// besides.
std::string split_error(const std::string& text);

// --seed, with what it is for.
template <class Value>
void add_seed(CLI::App& app, Value& seed, const std::string& help) {
  app.add_option("--seed", seed, help)->capture_default_str()->check(whole_number_error);
}

}  // namespace theseus::cli
