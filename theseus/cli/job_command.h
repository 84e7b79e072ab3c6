#pragma once

#include <functional>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "theseus/cli/transport_options.h"

namespace theseus::cli {

using Job =
    nlohmann::ordered_json (*)(const output::JobOptions& options, const transport::Watch& watch);

// What plan, align, transport and diagnose are: the shared options, a job with its progress, and its record as
// text or JSON.
std::function<int()> add_job(CLI::App& app, TransportOptions::For command, Job job);

// Throws InputError when a launcher has started several processes.
void require_one_process(std::string_view what);

// The second half of it.
int run_job(const TransportOptions& options, TransportOptions::For command, Job job);

}  // namespace theseus::cli
