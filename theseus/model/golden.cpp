#include "theseus/model/golden.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/generate.h"

namespace theseus::model {
namespace {

constexpr std::string_view kInput = "input/";
constexpr std::string_view kExpect = "expect/";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_expectation(std::string_view name) {
  return name.starts_with(kExpect) || name.starts_with("in/") || name.starts_with("out/");
}

// A row that goes on with something else than padding after it ended was recorded with
// end-of-sequence ignored.
bool goes_on_after_end(const at::Tensor& sequences, int64_t prompt, const Generation& generation) {
  const auto generated = sequences.narrow(1, prompt, sequences.size(1) - prompt);
  const auto end = ended(generated, generation.end).to(at::kLong);
  const auto after = (end.cumsum(1) - end).gt(0);
  return after.logical_and(generated.ne(generation.pad)).any().item<bool>();
}

at::Tensor greedy_like(Model& model, const Batch& batch, const at::Tensor& expected) {
  const auto& generation = model.architecture().generation;
  require(expected.dim() == 2, "expect/greedy must be [n, t], found ", expected.sizes());
  const auto found = batch.find("input_ids");
  require(found != batch.end() && found->second.dim() == 2, "input input_ids is missing");
  const auto prompt = generation.start.empty() ? found->second.size(1) : 1;
  require(
      expected.size(1) > prompt, "expect/greedy has ", expected.size(1),
      " tokens a row, no more than the prompt");
  return greedy(
      model, batch,
      {.new_tokens = expected.size(1) - prompt,
       .ignore_end = goes_on_after_end(expected, prompt, generation)});
}

Comparison compare(
    const std::string& name,
    const at::Tensor& found,
    const at::Tensor& expected,
    double tolerance) {
  Comparison row{.name = name};
  const bool whole = !at::isFloatingType(expected.scalar_type());
  if (whole && at::isFloatingType(found.scalar_type())) {
    row.error = kInfinity;
    row.problem = c10::str(found.scalar_type(), ", expected ", expected.scalar_type());
  } else if (found.sizes() != expected.sizes()) {
    row.error = kInfinity;
    row.problem = c10::str("shape ", found.sizes(), ", expected ", expected.sizes());
  } else if (whole) {
    const auto wrong = found.cpu().to(at::kLong).ne(expected.to(at::kLong)).sum().item<int64_t>();
    row.error = expected.numel() == 0
                    ? 0.0
                    : static_cast<double>(wrong) / static_cast<double>(expected.numel());
    row.passed = wrong == 0;
  } else {
    row.error = relative_error(found, expected);
    row.passed = row.error <= tolerance;
  }
  return row;
}

}  // namespace

Batch read_inputs(const checkpoint::Checkpoint& file) {
  bool prefixed = false;
  for (const auto& info : file.tensors()) {
    prefixed = prefixed || info.name.starts_with(kInput);
  }
  Batch batch;
  for (const auto& info : file.tensors()) {
    if (is_expectation(info.name)) {
      continue;
    }
    require(
        !prefixed || info.name.starts_with(kInput), file.files().front().string(), ": tensor ",
        info.name, " is neither an input/, expect/, in/ nor out/");
    batch[info.name.substr(prefixed ? kInput.size() : 0)] = file.tensor(info.name);
  }
  require(!batch.empty(), file.files().front().string(), " holds no inputs");
  return batch;
}

void RecordingTaps::linear(
    const std::string& module, const at::Tensor& input, const at::Tensor& output) {
  pieces_["in/" + module].push_back(input.detach().to(at::kCPU));
  pieces_["out/" + module].push_back(output.detach().to(at::kCPU));
}

std::map<std::string, at::Tensor> RecordingTaps::tensors() const {
  std::map<std::string, at::Tensor> whole;
  for (const auto& [name, pieces] : pieces_) {
    whole[name] = at::cat(pieces, 0);
  }
  return whole;
}

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) {
    return kInfinity;
  }
  if (expected.numel() == 0) {
    return 0;
  }
  const auto want = expected.to(at::kCPU, at::kDouble);
  const auto difference = (found.to(at::kCPU, at::kDouble) - want).abs().max().item<double>();
  const auto size = want.abs().max().item<double>();
  const auto error = difference / (size > 0 ? size : 1);
  return error >= 0 ? error : kInfinity;  // NaN is not
}

std::vector<Comparison> compare_with_golden(
    Model& model,
    const checkpoint::Checkpoint& golden,
    const update::Adapter* adapter,
    double tolerance) {
  const auto batch = read_inputs(golden);
  Outputs ours;
  const bool base = std::any_of(
      golden.tensors().begin(), golden.tensors().end(),
      [](const auto& info) { return info.name.starts_with("expect/base_"); });
  for (auto& [name, tensor] : base ? model.forward(batch) : Outputs()) {
    ours["expect/base_" + name] = tensor;
  }
  if (adapter != nullptr) {
    model.attach(*adapter);
  }
  RecordingTaps taps;
  for (auto& [name, tensor] : model.forward(batch, &taps)) {
    ours[std::string(kExpect) + name] = tensor;
  }
  ours.merge(taps.tensors());

  std::vector<Comparison> rows;
  for (const auto& info : golden.tensors()) {
    if (!is_expectation(info.name)) {
      continue;
    }
    const auto expected = golden.tensor(info.name);
    if (info.name == "expect/greedy") {
      ours[info.name] = greedy_like(model, batch, expected);
    }
    const auto found = ours.find(info.name);
    rows.push_back(
        found != ours.end() ? compare(info.name, found->second, expected, tolerance)
                            : Comparison{
                                  .name = info.name,
                                  .error = kInfinity,
                                  .problem = "this model computes no such tensor"});
  }
  require(
      !rows.empty(), golden.files().front().string(),
      " holds nothing to compare with: no expect/, in/ or out/ tensors");
  return rows;
}

}  // namespace theseus::model
