#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "theseus/model/family.h"

namespace theseus::stats {

// Rows of a model's spaces as a pass goes by. A space is seen where a norm writes it, or else where
// the first linear layer reads it: the other readers see the same rows.
class Capture final : public model::Taps {
 public:
  // Only spaces with these roles (see model::role_of).
  Capture(const model::Architecture& architecture, const std::set<std::string>& roles);

  void linear(
      const std::string& module, const at::Tensor& input, const at::Tensor& output) override;
  void norm(const std::string& module, const at::Tensor& input, const at::Tensor& output) override;

  // What was seen since the last call, by space: [n, t, d], or [n, d] for one row a sequence.
  std::map<std::string, at::Tensor> take();

 private:
  std::map<std::string, std::string> linear_in_, norm_in_, norm_out_;  // module -> space
  std::map<std::string, std::vector<at::Tensor>> pieces_;
};

}  // namespace theseus::stats
