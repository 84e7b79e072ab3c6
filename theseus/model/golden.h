#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/model.h"
#include "theseus/update/adapter.h"

namespace theseus::model {

// The inputs in a file of tensors: those named input/NAME, or, when there are none, every tensor by
// its bare name. expect/*, in/* and out/* are left out; anything else throws InputError.
Batch read_inputs(const checkpoint::Checkpoint& file);

// Keeps what the linear layers saw, on the CPU.
class RecordingTaps final : public Taps {
 public:
  void linear(
      const std::string& module, const at::Tensor& input, const at::Tensor& output) override;
  // in/MODULE and out/MODULE, all sequences together.
  std::map<std::string, at::Tensor> tensors() const;

 private:
  std::map<std::string, std::vector<at::Tensor>> pieces_;
};

// One tensor of a golden file beside ours.
struct Comparison {
  std::string name;     // expect/logits, in/MODULE
  double error = 0;     // see relative_error; infinity when `problem` is set
  std::string problem;  // why nothing could be compared; mostly empty
  bool passed = false;
};

// Largest |found - expected| over largest |expected| (or over 1 when that is 0). Infinity when either
// holds NaN, or when the shapes differ.
double relative_error(const at::Tensor& found, const at::Tensor& expected);

// Runs `model` on the golden file's inputs and compares every expect/NAME, in/MODULE and out/MODULE.
// `adapter` may be null. expect/base_NAME is NAME without the adapter. expect/greedy is generated
// with as many tokens as it has, past the end-of-sequence token if it goes on there; whole numbers
// must be equal. Throws InputError when the file holds no expectation.
std::vector<Comparison> compare_with_golden(
    Model& model,
    const checkpoint::Checkpoint& golden,
    const update::Adapter* adapter,
    double tolerance);

}  // namespace theseus::model
