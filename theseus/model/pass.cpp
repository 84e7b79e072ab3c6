#include "theseus/model/pass.h"

#include <ATen/ATen.h>

#include "theseus/model/layers.h"

namespace theseus::model {

Pass Pass::part(int64_t first, int64_t count, int64_t all) const {
  Pass result(weights_, {}, taps_);
  for (const auto& [name, stream] : streams) {
    result.streams[name] = stream.size(0) == all ? stream.narrow(0, first, count) : stream;
  }
  return result;
}

at::Tensor Pass::find_input(const std::string& name) const {
  const auto found = batch.find(name);
  return found == batch.end() ? at::Tensor() : found->second;
}

at::Tensor Pass::observed(const std::string& module, const at::Tensor& x, at::Tensor y) {
  if (const auto* delta = weights_.find_low_rank(module)) {
    y = y + at::linear(at::linear(x, delta->down), delta->up) * delta->scale;
  }
  if (taps_ != nullptr) {
    taps_->linear(module, x, y);
  }
  return y;
}

at::Tensor Pass::observed_norm(const std::string& module, const at::Tensor& x, at::Tensor y) {
  if (taps_ != nullptr) {
    taps_->norm(module, x, y);
  }
  return y;
}

at::Tensor Pass::linear(const std::string& module, const at::Tensor& x) {
  const auto bias = module + ".bias";
  return linear(module, x, module + ".weight", weights_.has(bias) ? bias : "");
}

at::Tensor Pass::linear(
    const std::string& module,
    const at::Tensor& x,
    const std::string& weight,
    const std::string& bias) {
  const auto y = bias.empty() ? at::linear(x, weights_[weight])
                              : at::linear(x, weights_[weight], weights_[bias]);
  return observed(module, x, y);
}

at::Tensor Pass::project(const std::string& tensor, const at::Tensor& x) {
  return observed(tensor, x, x.matmul(weights_[tensor]));
}

at::Tensor Pass::layer_norm(const std::string& module, const at::Tensor& x, double eps) {
  const auto& gain = weights_[module + ".weight"];
  return observed_norm(
      module, x, at::layer_norm(x, gain.sizes(), gain, weights_[module + ".bias"], eps));
}

at::Tensor Pass::rms_norm(const std::string& module, const at::Tensor& x, double eps) {
  return observed_norm(module, x, model::rms_norm(x, weights_[module + ".weight"], eps));
}

at::Tensor Pass::embedding(const std::string& tensor, const at::Tensor& ids) {
  return at::embedding(weights_[tensor], ids);
}

at::Tensor Pass::patch_embedding(
    const std::string& module, const at::Tensor& images, int64_t patch) {
  const auto& kernel = weights_[module + ".weight"];  // [d, c, p, p]
  const auto rows = patches(images, patch);
  const auto bias = module + ".bias";
  const auto matrix = kernel.view({kernel.size(0), -1});
  return weights_.has(bias) ? at::linear(rows, matrix, weights_[bias]) : at::linear(rows, matrix);
}

std::pair<at::Tensor, at::Tensor> Pass::with_past(
    const std::string& module, const at::Tensor& k, const at::Tensor& v) {
  if (cache == nullptr) {
    return {k, v};
  }
  auto& past = cache->attention[module];
  past = past.first.defined() ? std::pair(at::cat({past.first, k}, 2), at::cat({past.second, v}, 2))
                              : std::pair(k, v);
  return past;
}

}  // namespace theseus::model
