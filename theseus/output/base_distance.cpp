#include "theseus/output/base_distance.h"

#include <cmath>
#include <map>
#include <set>
#include <string>

#include <ATen/ATen.h>

namespace theseus::output {
namespace {

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.contiguous().reshape(-1).view(at::kByte);
}

}  // namespace

BaseDistance distance_of_bases(
    const Opened& opened, const std::vector<transport::Disposition>& plan) {
  std::map<std::string, std::string> stored;  // the source's, by its own name of the tensor
  for (const auto& parameter : opened.source.architecture().parameters) {
    stored[parameter.tensor] = parameter.stored;
  }
  const auto& ours = opened.target.checkpoint();
  const auto& theirs = opened.source.checkpoint();
  BaseDistance result;
  double apart = 0, whole = 0, equal = 0, bytes = 0;
  std::set<std::string> seen;
  for (const auto& parameter : opened.target.architecture().parameters) {
    if (!seen.insert(parameter.tensor).second) {
      continue;
    }
    ++result.of;
    const auto other = stored.find(parameter.tensor);
    if (other == stored.end()) {
      continue;
    }
    const auto b = ours.tensor(parameter.stored);
    const auto a = theirs.tensor(other->second);
    if (a.sizes() == b.sizes()) {
      ++result.compared;
      const auto wide = a.to(at::kDouble);
      apart += (wide - b.to(at::kDouble)).square().sum().item<double>();
      whole += wide.square().sum().item<double>();
      bytes += static_cast<double>(b.nbytes());
      if (a.scalar_type() == b.scalar_type()) {
        equal += bytes_of(a).eq(bytes_of(b)).sum().item<double>();
      }
    }
    ours.forget(parameter.stored);
    theirs.forget(other->second);
  }
  result.relative = whole > 0 ? std::sqrt(apart / whole) : 0;
  result.equal_bytes = bytes > 0 ? equal / bytes : 0;
  for (const auto& row : plan) {
    result.same_shapes =
        result.same_shapes &&
        (!row.carried || (row.source != nullptr && row.source->name == row.target->name &&
                          row.source->shape == row.target->shape));
  }
  return result;
}

}  // namespace theseus::output
