#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "theseus/stats/walk.h"
#include "theseus/transport/schedule.h"

namespace theseus::transport {

constexpr const char* kWalkFile = "walk.safetensors";
constexpr const char* kWalkSavedFile =
    "walk.saved";  // from the first save on, as long as that file is needed

// Where a walk stands: batches before `batch` have passed the group that begins at stage `first`.
struct Position {
  int64_t first = 0;
  int64_t batch = 0;
};

// Unfinished work in `directory` goes on by the schedule that it began with: how much memory is free
// may have changed. Without unfinished work `now` is that schedule, and is kept there.
Schedule agreed_schedule(
    const std::filesystem::path& directory, const Schedule& now, int64_t batches);

constexpr const char* kGradientsFile = "gradients.safetensors";

// Moments by stage, as a file of their own. read_moments throws InputError for a damaged one.
void write_moments(
    const std::filesystem::path& path, const std::map<int64_t, stats::Moments>& moments);
std::map<int64_t, stats::Moments> read_moments(const std::filesystem::path& path);

// The hidden states of all batches between groups, in memory or in files, and everything else that
// an interrupted walk needs to go on. Whatever is saved appears whole or not at all.
class WalkMemory {
 public:
  // `shared`: several processes have the states of some batches each. Then what is saved is the end of
  // each group, and no states but those in files: they can be computed anew, and belong to no single
  // process.
  WalkMemory(
      std::filesystem::path directory,
      int64_t batches,
      bool spill,
      double seconds,
      bool shared = false,
      c10::Device device = c10::Device(c10::kCPU));  // where states are when they are taken

  // Reads what an earlier process saved; false when there is nothing.
  bool load(Position& position, std::map<int64_t, stats::Moments>& moments, stats::Moments& outer);
  // `seconds` have passed since the last time; with states in files or several processes also, or only, the
  // end of a group.
  bool is_due(const Position& position) const;
  // With states in files it then removes those that no group will read any more.
  void save(
      const Position& position,
      const std::map<int64_t, stats::Moments>& moments,
      const stats::Moments& outer);
  // Whether there is something to load.
  bool is_saved() const;
  void clear();

  // The state of a batch at the entry of stage `first`.
  stats::WalkState take(int64_t first, int64_t batch);
  void put(int64_t first, int64_t batch, stats::WalkState state);

 private:
  void forget_before(int64_t first);
  std::filesystem::path file() const { return directory_ / kWalkFile; }
  std::filesystem::path state_file(int64_t first, int64_t batch) const;

  std::filesystem::path directory_;
  bool spill_;
  double seconds_;
  bool shared_;
  c10::Device device_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  std::vector<stats::WalkState> states_;
};

}  // namespace theseus::transport
