#pragma once

#include <map>
#include <string>
#include <vector>

#include "theseus/model/model.h"

namespace theseus::model {

// Other values for some tensors of a model, for as long as this lives.
class Replaced {
 public:
  Replaced(Model& model, const std::map<std::string, at::Tensor>& tensors) : model_(model) {
    for (const auto& [name, value] : tensors) {
      model_.weights().replace(name, value);
      names_.push_back(name);
    }
  }
  ~Replaced() {
    for (const auto& name : names_) {
      model_.weights().restore(name);
    }
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  Model& model_;
  std::vector<std::string> names_;
};

}  // namespace theseus::model
