#pragma once

#include <map>
#include <string>
#include <vector>

#include "theseus/output/carried_files.h"

namespace theseus::output {

// The target's tensors from its carried parameters: the parts of a fused one in their places.
class Assembly {
 public:
  Assembly(const model::Architecture& target, const CarriedFiles& files);

  // By the library's own name of a tensor.
  bool contains(const std::string& tensor) const;
  std::vector<int64_t> shape(const std::string& tensor) const;
  // Zeros where a part has no delta; undefined when none has one.
  at::Tensor delta(const std::string& tensor) const;
  // Factors of a tensor that was carried in factors: parts share what they read.
  update::LowRank factors(const std::string& tensor) const;
  bool has_factors(const std::string& tensor) const;
  std::vector<std::string> tensors() const;  // all of them, sorted

 private:
  const CarriedFiles& files_;
  std::map<std::string, std::vector<const model::Parameter*>> parts_;
};

}  // namespace theseus::output
