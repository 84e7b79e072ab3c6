#include "tests/support/job.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/checkpoint/write.h"

#include "tests/support/cases.h"

namespace theseus::tests {

namespace fs = std::filesystem;

void write_inputs(const fs::path& path, const model::Batch& batch) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, tensor] : batch) {
    tensors.emplace_back(name, tensor.contiguous());
  }
  checkpoint::write_safetensors(path, tensors);
}

output::JobOptions planted_job(const Planted& planted, const fs::path& scratch, int64_t sequences) {
  const auto calibration = scratch / "calibration.safetensors";
  write_inputs(calibration, planted_calibration(model::Model::open(planted.source), sequences, 11));
  output::JobOptions options;
  options.source = planted.source;
  options.tuned = planted.tuned;
  options.target = planted.target;
  options.calibration = calibration;
  options.out = scratch / "out";
  options.write = "update";
  return options;
}

bool sees_all(const std::string& name) {
  if (name == "openclip") {
    return true;
  }
  const auto towers = open_case(name).architecture().towers;
  return std::none_of(towers.begin(), towers.end(), [](const auto& tower) {
    return tower.vocabulary > 0 && tower.vocabulary < tower.width;
  });
}

nlohmann::ordered_json run(const output::JobOptions& options) {
  return output::transport_job(options, kQuiet);
}

std::map<std::string, at::Tensor> read_tensors(const fs::path& path) {
  std::map<std::string, at::Tensor> tensors;
  const auto file = checkpoint::Checkpoint::open(path);
  for (const auto& info : file.tensors()) {
    tensors[info.name] = file.tensor(info.name);
  }
  return tensors;
}

std::map<std::string, at::Tensor> update_of(const fs::path& out) {
  return read_tensors(out / "update.safetensors");
}

double frobenius_error(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) {
    return std::numeric_limits<double>::infinity();
  }
  const auto wide = expected.to(at::kDouble);
  const auto norm = wide.norm().item<double>();
  return (found.to(at::kDouble) - wide).norm().item<double>() / (norm > 0 ? norm : 1);
}

at::Tensor part_of(
    const std::map<std::string, at::Tensor>& tensors, const model::Parameter& parameter) {
  const auto& tensor = tensors.at(parameter.tensor);
  return parameter.fused() ? tensor.narrow(0, parameter.row, parameter.shape[0]) : tensor;
}

std::map<std::string, at::Tensor> difference(const fs::path& tuned, const fs::path& base) {
  const auto after = model::Model::open(tuned);
  const auto before = model::Model::open(base);
  std::map<std::string, at::Tensor> result;
  for (const auto& parameter : before.architecture().parameters) {
    const auto now = after.checkpoint().tensor(parameter.stored).to(at::kDouble);
    const auto delta = now - before.checkpoint().tensor(parameter.stored).to(at::kDouble);
    if (delta.count_nonzero().item<int64_t>() > 0) {
      result[parameter.tensor] = delta;
    }
  }
  return result;
}

}  // namespace theseus::tests
