#include "theseus/stats/capture.h"

#include <ATen/ATen.h>

namespace theseus::stats {

Capture::Capture(const model::Architecture& architecture, const std::set<std::string>& roles) {
  const auto wanted = [&](const std::string& space) {
    return roles.contains(model::role_of(space));
  };
  std::set<std::string> seen;
  for (const auto& norm : architecture.norms) {
    if (wanted(norm.out)) {
      norm_out_[norm.module] = norm.out;
      seen.insert(norm.out);
    }
    if (wanted(norm.in)) {
      norm_in_[norm.module] = norm.in;
    }
  }
  for (const auto& layer : architecture.linears) {
    if (wanted(layer.in) && seen.insert(layer.in).second) {
      linear_in_[layer.module] = layer.in;
    }
  }
}

void Capture::linear(
    const std::string& module, const at::Tensor& input, const at::Tensor& /*output*/) {
  if (const auto found = linear_in_.find(module); found != linear_in_.end()) {
    pieces_[found->second].push_back(input);
  }
}

void Capture::norm(const std::string& module, const at::Tensor& input, const at::Tensor& output) {
  if (const auto found = norm_out_.find(module); found != norm_out_.end()) {
    pieces_[found->second].push_back(output);
  }
  if (const auto found = norm_in_.find(module); found != norm_in_.end()) {
    pieces_[found->second].push_back(input);
  }
}

std::map<std::string, at::Tensor> Capture::take() {
  std::map<std::string, at::Tensor> rows;
  for (auto& [space, pieces] : pieces_) {
    rows[space] = pieces.size() == 1 ? pieces.front() : at::cat(pieces, 0);
    pieces.clear();  // as soon as they are together
  }
  pieces_.clear();
  return rows;
}

}  // namespace theseus::stats
