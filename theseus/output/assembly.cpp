#include "theseus/output/assembly.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace theseus::output {

Assembly::Assembly(const model::Architecture& target, const CarriedFiles& files) : files_(files) {
  for (const auto& parameter : target.parameters) {
    parts_[parameter.tensor].push_back(&parameter);
  }
}

bool Assembly::contains(const std::string& tensor) const {
  const auto found = parts_.find(tensor);
  return found != parts_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const auto* part) {
           return files_.contains(part->name);
         });
}

std::vector<int64_t> Assembly::shape(const std::string& tensor) const {
  const auto& parts = parts_.at(tensor);
  auto shape = parts.front()->shape;
  for (size_t i = 1; i < parts.size(); ++i) {
    shape[0] += parts[i]->shape[0];
  }
  return shape;
}

at::Tensor Assembly::delta(const std::string& tensor) const {
  if (!contains(tensor)) {
    return {};
  }
  const auto& parts = parts_.at(tensor);
  if (parts.size() == 1) {
    return files_.read(parts.front()->name).dense();
  }
  auto whole = at::zeros(shape(tensor), at::kFloat);
  for (const auto* part : parts) {
    if (files_.contains(part->name)) {
      whole.narrow(0, part->row, part->shape[0]).copy_(files_.read(part->name).dense());
    }
  }
  return whole;
}

update::LowRank Assembly::factors(const std::string& tensor) const {
  std::vector<at::Tensor> ups;
  auto result = *files_.read(parts_.at(tensor).front()->name).factors;
  for (const auto* part : parts_.at(tensor)) {
    ups.push_back(files_.read(part->name).factors->up);
  }
  result.up = at::cat(ups, 0);
  return result;
}

bool Assembly::has_factors(const std::string& tensor) const {
  const auto& parts = parts_.at(tensor);
  return std::all_of(parts.begin(), parts.end(), [&](const auto* part) {
    return files_.contains(part->name) && files_.read(part->name).factors;
  });
}

std::vector<std::string> Assembly::tensors() const {
  std::vector<std::string> names;
  for (const auto& [name, parts] : parts_) {
    names.push_back(name);
  }
  return names;
}

}  // namespace theseus::output
