#include "theseus/transport/writer_taps.h"

#include <utility>

#include <ATen/ATen.h>

namespace theseus::transport {

std::vector<const model::Linear*> writers_in(const model::Architecture& model, int64_t block) {
  std::vector<const model::Linear*> writers;
  for (const auto& layer : model.linears) {
    const bool one = layer.block == block && layer.out.size() == 1;
    if (one && model::is_in_block(layer.out[0]) && layer.out[0].ends_with("_out")) {
      writers.push_back(&layer);
    }
  }
  return writers;
}

WriterTaps::WriterTaps(const model::Architecture& model, int64_t block) {
  for (const auto* writer : writers_in(model, block)) {
    roles_[writer->module] = model.role(writer->module, block);
  }
}

void WriterTaps::linear(
    const std::string& module, const at::Tensor& input, const at::Tensor& /*output*/) {
  if (const auto found = roles_.find(module); found != roles_.end()) {
    rows_[found->second].input = input;
    pending_ = found->second;
  }
}

void WriterTaps::norm(
    const std::string& /*module*/, const at::Tensor& input, const at::Tensor& /*output*/) {
  if (!pending_.empty()) {
    rows_[std::exchange(pending_, "")].after = input;
  }
}

std::map<std::string, WriterRows> WriterTaps::take(const at::Tensor& end) {
  if (!pending_.empty()) {
    rows_[std::exchange(pending_, "")].after = end;
  }
  return std::exchange(rows_, {});
}

}  // namespace theseus::transport
