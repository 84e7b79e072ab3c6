#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "theseus/model/family.h"
#include "theseus/model/locate.h"
#include "theseus/model/weights.h"
#include "theseus/update/adapter.h"

namespace theseus::model {

// A model on disk, ready to run. Opening reads headers and configs, no weights.
class Model {
 public:
  static Model open(const std::filesystem::path& path, const OpenOptions& options = {});

  const Location& location() const { return location_; }
  const Architecture& architecture() const { return architecture_; }
  const checkpoint::Checkpoint& checkpoint() const { return *checkpoint_; }

  // Adds an adapter to every pass from now on. Throws InputError naming modules that this model does
  // not have or that have another shape. Replaces an earlier adapter.
  void attach(const update::Adapter& adapter);
  void detach();

  // Inputs on any device, checked against what the family takes. Throws NumericError when an output
  // is not finite.
  Outputs forward(const Batch& batch, Taps* taps = nullptr);

  // The same in the caller's hands: begin(), then run() as often as tokens are generated; or
  // network().enter(), run_block() for each block, network().leave().
  Pass begin(const Batch& batch, Taps* taps = nullptr);
  void run(Pass& pass) const;
  const Network& network() const { return *architecture_.network; }
  // Block `block` of all towers' blocks counted through.
  void run_block(int64_t block, Pass& pass) const;
  Weights& weights() { return *weights_; }
  const Weights& weights() const { return *weights_; }
  // Keeps at most one block's weights in memory at a time.
  void set_walk(bool drop_blocks) { drop_blocks_ = drop_blocks; }
  // How many sequences a block runs for at a time on a CPU; 0: chosen by size. The results are the
  // same but for rounding.
  void set_group(int64_t sequences) { group_ = sequences; }
  // Called after each block with how many of how many are done.
  void on_block(std::function<void(int64_t done, int64_t all)> watch) { watch_ = std::move(watch); }

  // Elements of all parameters, tied ones once.
  int64_t parameter_count() const;

 private:
  int64_t sequences_at_a_time(const Tower& tower, const at::Tensor& stream) const;

  Location location_;
  std::shared_ptr<const checkpoint::Checkpoint> checkpoint_;
  Architecture architecture_;
  std::unique_ptr<Weights> weights_;
  bool drop_blocks_ = false;
  int64_t group_ = 0;
  std::function<void(int64_t, int64_t)> watch_;
};

}  // namespace theseus::model
