#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

namespace theseus::tests {

// Planted truths: from a small source model a target is built that computes the same function, and
// from the tuned source what a perfect transport makes of the target.
enum class Planting {
  // Same sizes. Residual features, heads, units within heads (where positions do not rotate them),
  // MLP units and CLIP's joint space in another order. Query heads stay with their keys and values.
  kPermuted,
  // Every residual feature, head, MLP unit and joint feature twice, then in another order. Head width
  // stays. Activations are exact copies.
  kWidened,
  // kPermuted, but the residual stream is rotated. The source's residual norms have gains 1, as after
  // folding them into the weights behind; so no gain changes. Models with RMS norms only.
  kRotated,
};

enum class Changes {
  kWeights,  // of linear layers but those onto labels and vocabulary
  // Also the biases, gains and shifts in mapped spaces. Only where T is a permutation does transport
  // give them exactly: a widening isometry divides them by sqrt(2).
  kAll,
};

struct PlantOptions {
  at::ScalarType dtype = at::kFloat;  // of all four models; or bfloat16
  Changes changes = Changes::kWeights;
  uint64_t seed = 1;
  // A change that leaves the span of a layer's outputs cannot be carried by what is observed of them.
  // So a layer with more outputs than inputs changes within that span; the first MLP layers only when
  // this is set, since the space behind the activation has all directions.
  bool confine_mlp = false;
};

struct Planted {
  std::filesystem::path source;    // the base, strengthened
  std::filesystem::path tuned;     // source + changes of relative size 0.05 per tensor
  std::filesystem::path target;    // the construction of source
  std::filesystem::path expected;  // the construction of tuned
  model::Batch inputs;             // a few sequences, for either model
  // The isometry that relates the two models' activations, by space: S T = R up to a factor. [ds, dt]
  std::map<std::string, at::Tensor> maps;

  // An output of the source as the target must give it.
  at::Tensor as_target(const std::string& output, const at::Tensor& value) const;
};

// Folders in tests/golden/cases that hold a model, and "openclip".
std::vector<std::string> planted_cases();
// The case for a family's name; the name itself when it is none.
std::string planted_case(const std::string& family);

// Writes scratch/{source,tuned,target,expected} from a family's or a case's model. Throws InputError
// when the planting is not for this family.
Planted plant(
    const std::string& family_or_case,
    Planting planting,
    const std::filesystem::path& scratch,
    const PlantOptions& options = {});

// Random inputs of every kind the model takes, with padding where it takes a mask.
model::Batch planted_calibration(const model::Model& model, int64_t sequences, uint64_t seed);
// As safetensors, for model::read_inputs.
void write_calibration(const std::filesystem::path& path, const model::Batch& batch);

}  // namespace theseus::tests
