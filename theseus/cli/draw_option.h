#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "theseus/stats/calibration.h"

namespace theseus::cli {

// --draw, which says how many of the examples of a calibration take part. Where nobody says, at most this many do:
inline constexpr int64_t kDrawn = 960;

void add_draw(CLI::App& app, std::string& draw);

// What was typed as --draw, and that it goes with --batches and --shots of `app`, whose numbers are in `sampling` and
// elsewhere. Throws InputError.
void read_draw(const CLI::App& app, const std::string& draw, stats::Sampling& sampling);

}  // namespace theseus::cli
