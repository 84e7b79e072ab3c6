#pragma once

#include <map>
#include <string>
#include <vector>

#include "theseus/model/family.h"

namespace theseus::transport {

// What a layer that writes the residual stream reads, and the stream behind it.
struct WriterRows {
  at::Tensor input;  // [n, t, k]
  at::Tensor after;  // [n, t, d]: what the next norm of the block reads, or the block's end
};

// Layers of a block whose output is added to the residual stream, in order: those that write a space
// attn_out, cross_out or mlp_out.
std::vector<const model::Linear*> writers_in(const model::Architecture& model, int64_t block);

// Sees the writers of one block. All sequences must run at once: Model::set_group.
class WriterTaps final : public model::Taps {
 public:
  WriterTaps(const model::Architecture& model, int64_t block);

  void linear(
      const std::string& module, const at::Tensor& input, const at::Tensor& output) override;
  void norm(const std::string& module, const at::Tensor& input, const at::Tensor& output) override;

  // By role of the module; `end`: the stream at the block's end.
  std::map<std::string, WriterRows> take(const at::Tensor& end);

 private:
  std::map<std::string, std::string> roles_;  // of the modules that are writers
  std::map<std::string, WriterRows> rows_;
  std::string pending_;  // the writer whose sum has not been seen
};

}  // namespace theseus::transport
