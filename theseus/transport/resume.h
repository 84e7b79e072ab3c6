#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "theseus/stats/walk.h"

namespace theseus::transport {

// Where a walk stands: batches before `batch` have passed the group that begins at stage `first`.
struct Position {
  int64_t first = 0;
  int64_t batch = 0;
};

// The hidden states of all batches between groups, in memory or in files, and everything else that
// an interrupted walk needs to go on. Whatever is saved appears whole or not at all.
class WalkMemory {
 public:
  WalkMemory(std::filesystem::path directory, int64_t batches, bool spill, double seconds);

  // Reads what an earlier process saved; false when there is nothing.
  bool load(Position& position, std::map<int64_t, stats::Moments>& moments, stats::Moments& outer);
  // Saves when `seconds` have passed since the last time, and before a group whose states are in
  // files.
  void save(
      const Position& position,
      const std::map<int64_t, stats::Moments>& moments,
      const stats::Moments& outer);
  void clear();

  // The state of a batch at the entry of stage `first`.
  stats::WalkState take(int64_t first, int64_t batch);
  void put(int64_t first, int64_t batch, stats::WalkState state);
  // No state of stages before `first` is needed any more.
  void forget_before(int64_t first);

 private:
  std::filesystem::path file() const { return directory_ / "walk.safetensors"; }
  std::filesystem::path state_file(int64_t first, int64_t batch) const;

  std::filesystem::path directory_;
  bool spill_;
  double seconds_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  std::vector<stats::WalkState> states_;
};

}  // namespace theseus::transport
