#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "theseus/output/job.h"

#include "tests/support/planted.h"

namespace theseus::tests {

// Inputs as stats::Calibration reads them; names as they are.
void write_inputs(const std::filesystem::path& path, const model::Batch& batch);

// Carries `planted`'s update to its target with random inputs in scratch/calibration.safetensors;
// writes the update to scratch/out.
output::JobOptions planted_job(
    const Planted& planted, const std::filesystem::path& scratch, int64_t sequences = 256);

// Whether random inputs of a planted case show every direction of every space. With fewer tokens than
// features (llama3_rope) the first block does not see them all, and what a change does in the others
// cannot be known.
bool sees_all(const std::string& name);

inline const transport::Watch kQuiet = [](double, double, const std::string&) {};
// Runs the job, without a word about its progress.
nlohmann::ordered_json run(const output::JobOptions& options);

// Every tensor of a file or of a model's directory, by its name there.
std::map<std::string, at::Tensor> read_tensors(const std::filesystem::path& path);
// Of the update that a job wrote to `out`.
std::map<std::string, at::Tensor> update_of(const std::filesystem::path& out);

// |found - expected|_F over |expected|_F (or over 1 when that is 0). Infinity when shapes differ.
double frobenius_error(const at::Tensor& found, const at::Tensor& expected);

// What one parameter of `base` is in `tensors` (by own names of tensors): its rows of a fused one.
at::Tensor part_of(
    const std::map<std::string, at::Tensor>& tensors, const model::Parameter& parameter);

// tuned - base by own names of tensors, in float64: those that differ.
std::map<std::string, at::Tensor> difference(
    const std::filesystem::path& tuned, const std::filesystem::path& base);

}  // namespace theseus::tests
