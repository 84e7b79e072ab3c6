#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "theseus/model/model.h"

namespace theseus::transport {

// What fine-tuning changed in the source, parameter by parameter. Reads on demand.
class SourceUpdate {
 public:
  // `tuned`: a model directory, a bare state dict (what it lacks is unchanged) or a PEFT adapter.
  // Throws InputError when it is not a tune of `source`: no tensor in common, other shapes, modules
  // that the source lacks.
  static SourceUpdate open(const std::filesystem::path& tuned, const model::Model& source);

  bool is_adapter() const { return adapter_ != nullptr; }
  const update::Adapter* adapter() const { return adapter_.get(); }
  const std::filesystem::path& path() const { return path_; }
  // What a reader should know: tensors that the source lacks, other dtypes.
  const std::vector<std::string>& notes() const { return notes_; }

  // Rows for tokens that were added in tuning: the tuned embedding has so many more than the source's. They are no
  // part of the update, which is that of the tokens before them.
  int64_t added_rows() const { return added_rows_; }

  // Tensors of a tuned model that the source does not have, as a new head.
  const std::vector<std::string>& beside() const { return beside_; }

  // Of all its tensors; see checkpoint::fingerprint.
  std::string fingerprint() const;

  // Whether the parameter's tensor is among those that differ; reads it the first time.
  bool changes(const model::Parameter& parameter) const;
  // tuned - base in float32, of the parameter's shape, computed on `device`; undefined where nothing changed. A low-rank
  // update is multiplied out, on the CPU.
  at::Tensor find_delta(
      const model::Parameter& parameter, c10::Device device = c10::Device(c10::kCPU)) const;
  // Its norm: known once the delta was asked for, and else computed.
  double delta_norm(
      const model::Parameter& parameter, c10::Device device = c10::Device(c10::kCPU)) const;
  // Some rows of the base's tensor and of the delta, for an estimate; nothing else of them is read.
  struct Sample {
    at::Tensor base, delta;  // float32, [rows, ...]
  };
  Sample sample(const model::Parameter& parameter) const;
  // The factors of a weight that an adapter changes by factors alone: its rows of a fused one.
  std::optional<update::LowRank> find_low_rank(const model::Parameter& parameter) const;

 private:
  // What an adapter changes besides the source's parameters goes nowhere: a tied head, a new head.
  void note_what_is_not_a_parameter(const model::Architecture& source);
  void open_dense(const model::Model& source);
  void note_if_changed(const std::string& stored);
  bool compare(const model::Parameter& parameter) const;
  at::Tensor base_of(const model::Parameter& parameter) const;
  // What stands in the base's place, where no factors do.
  at::Tensor tuned_of(const model::Parameter& parameter) const;
  void note_dtypes(const model::Model& source);

  std::filesystem::path path_;
  std::shared_ptr<const checkpoint::Checkpoint> base_, tuned_;
  std::map<std::string, std::string> stored_;  // tensor's own name -> in tuned_
  std::shared_ptr<const update::Adapter> adapter_;
  std::shared_ptr<model::Model> adapted_;  // the source with the adapter: knows its names
  std::vector<std::string> notes_, beside_;
  int64_t added_rows_ = 0;
  // By parameter: each is compared once.
  mutable std::map<std::string, bool> changed_;
  mutable std::map<std::pair<std::string, c10::DeviceType>, double>
      norms_;  // as a device computes them
};

// tuned - base of every tensor that differs, by its own name, in float32: the parts of a fused one in their
// places, 0 between them. Of one block, or of all.
std::map<std::string, at::Tensor> whole_deltas(
    const SourceUpdate& update,
    const model::Architecture& architecture,
    std::optional<int64_t> block = std::nullopt);

// base + alpha * delta of the tensors that `deltas` names and the model has, in float32.
std::map<std::string, at::Tensor> with_deltas(
    const model::Model& model, const std::map<std::string, at::Tensor>& deltas, double alpha = 1);

// Throws InputError unless something of `architecture` differs from the base.
void require_change(const SourceUpdate& update, const model::Architecture& architecture);

}  // namespace theseus::transport
