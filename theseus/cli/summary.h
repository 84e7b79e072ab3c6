#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/output/job.h"

namespace theseus::cli {

// A plan for people: what happens to the parameters (equal rows of all blocks as one, unless
// `every`), how blocks correspond, what it costs.
std::string plan_text(const nlohmann::ordered_json& plan, bool every);

// What of an output was there before, in lines: all of it, or work that was gone on with.
std::string history_text(const nlohmann::ordered_json& record);

// What a transport or an alignment did, in a few lines.
std::string result_text(const nlohmann::ordered_json& record, const std::string& out);

// What became of several updates: a line each, and notes once with those they are for.
std::string several_text(
    const std::vector<nlohmann::ordered_json>& records,
    const std::vector<output::JobOptions>& jobs);

}  // namespace theseus::cli
