#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/output/assembly.h"
#include "theseus/output/deltas.h"
#include "theseus/output/opened.h"
#include "theseus/output/output_dtype.h"
#include "theseus/transport/plan.h"
#include "theseus/transport/schedule.h"

namespace theseus::output {

// "model", "update" or "adapter": as asked, or as the update is. Throws InputError for an adapter from
// an update that is none, or from a method that makes noise. `update` may be null.
std::string write_word(
    const JobOptions& options, const transport::SourceUpdate* update, const maps::Method& method);

// Bytes for the output and for what is kept until it is there. `schedule` may be null.
int64_t disk_needed(
    const std::string& write,
    OutputDtype dtype,
    const model::Model& target,
    const std::vector<transport::Disposition>& plan,
    const transport::Schedule* schedule);

void write_update_file(
    const Opened& opened,
    const std::vector<transport::Disposition>& plan,
    const Assembly& assembly,
    const std::filesystem::path& directory,
    const Watch& watch);

// Writes the factors that were carried, and returns null. With options.lora it writes the nearest
// adapter of that rank, and returns {"rank", "kept": the share of the square that it holds,
// "left_behind": tensors that no adapter holds}.
nlohmann::ordered_json write_adapter_files(
    const JobOptions& options,
    const Opened& opened,
    const Assembly& assembly,
    const std::filesystem::path& directory);
std::vector<std::string> notes_on_adapter(const nlohmann::ordered_json& adapter);

}  // namespace theseus::output
