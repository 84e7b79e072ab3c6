#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "theseus/base/side_by_side.h"
#include "theseus/base/stopwatch.h"
#include "theseus/cluster/processes.h"
#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"
#include "theseus/transport/depth.h"
#include "theseus/transport/rows_kept.h"
#include "theseus/transport/schedule.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {

class WalkMemory;
struct Position;

struct AlignOptions {
  std::string method = "procrustes";
  std::string tokens;  // which pair; empty: grid for images, text or offsets for text
  maps::Options maps;
  Depth depth = Depth::kDivided;
  Statistics statistics = Statistics::kAuto;
  stats::Sampling sampling;
  int64_t memory = 0;  // bytes; 0: what is free
  // They share out batches and maps; all of them make the same calls. Must outlive the work.
  const cluster::Processes* processes = &cluster::alone();
};

// How far the work has come, in its own units, and what is being done.
using Watch = std::function<void(double done, double all, const std::string& doing)>;

// Receives the maps of the walk's stages, in order, on a GPU from a thread of its own. After a kill the last
// ones may come again, the same as before.
struct Sink {
  std::function<void(int64_t stage, const MapSet& maps, const stats::Moments& moments)> stage;
  // The group of stages `first` to `last` - 1 is complete: returns what puts all it gave on disk, on a GPU while the next
  // group comes.
  std::function<std::function<void()>(int64_t first, int64_t last)> group;
  // Groups come from this one on: what an earlier process left of them is of no use.
  std::function<void(int64_t first)> begin = {};
  // What came so far must outlast the machine's sudden end: a position behind it is about to be saved.
  std::function<void()> sync = {};
  // Everything has come, and the position that was saved is about to go. Not called when none was.
  std::function<void()> end = {};
  bool runs_models = false;  // so it must not work beside the walk, which does
};

// Learns how the inner spaces of two models correspond.
class Aligner {
 public:
  // Checks that the two can be aligned with this calibration (which may be null for methods that
  // need none), and matches blocks by similarity where depths differ and that is asked for.
  Aligner(
      model::Model& source,
      model::Model& target,
      const stats::Calibration* calibration,
      const AlignOptions& options,
      const Watch& watch);
  // Along a route that is known already.
  Aligner(
      model::Model& source,
      model::Model& target,
      const stats::Calibration* calibration,
      const AlignOptions& options,
      const stats::Route& route,
      const at::Tensor& similarity);

  const cluster::Processes& processes() const { return *options_.processes; }
  const maps::Method& method() const { return *method_; }
  const stats::Route& route() const { return route_; }
  // [source blocks, target blocks], when blocks were matched by it; else undefined.
  const at::Tensor& similarity() const { return similarity_; }
  // Towers that the calibration reaches; all of them when none is needed.
  std::set<std::string> towers() const;
  std::map<std::string, std::string> matcher_words() const;

  // What is doubtful beforehand: fewer rows than a space is wide, vocabularies that cannot be compared.
  std::vector<std::string> notes(const SpaceSet& needed) const;
  // What will be carried through the maps, which takes memory, too: before schedule() and run().
  void set_loads(std::vector<Load> loads) { loads_ = std::move(loads); }
  Schedule schedule(const SpaceSet& needed) const;
  // Spent by run() on "forward", "statistics", "solve" and, by the sink, "carry" and "store", which on a GPU go on
  // beside each other.
  const Seconds& seconds() const { return seconds_; }

  // Walks, solves the maps of `needed`, and gives them to `sink`. Unfinished work is kept in
  // `work`, a directory of our own, so that the next call with the same arguments goes on from
  // there and gives the same result; it is saved every `seconds`. With several processes these
  // arguments are the first one's, and only its sink gets maps.
  void run(
      const SpaceSet& needed,
      const std::filesystem::path& work,
      const Sink& sink,
      const Watch& watch,
      double seconds = 20);

 private:
  void prepare();
  // In a walk.
  int64_t sequences_at_a_time() const;
  c10::Device device() const { return source_.weights().placement().device; }
  stats::Grams grams() const;
  // Where an earlier process has come to, if there was one.
  Position resume(
      WalkMemory& memory, std::map<int64_t, stats::Moments>& moments, stats::Moments& outer) const;
  // Brings the hidden states of this process's batches to the entry of stage `first`, without statistics.
  void catch_up(const Schedule& plan, int64_t first, WalkMemory& memory, const Watch& watch);
  // Of the group's stages: in the first process from all, elsewhere none.
  void solve_group(
      Solver& solver,
      std::pair<int64_t, int64_t> group,
      const SpaceSet& needed,
      std::map<int64_t, stats::Moments>& moments,
      const Sink& sink,
      Aside& handover,
      Aside& storing);
  // Of the calibration at most, by tower.
  std::map<std::string, int64_t> rows_by_tower() const;
  SpaceSet rows_kept_of(const SpaceSet& observed) const;
  // From `work`, where an earlier process has left them, or over the whole calibration.
  std::map<int64_t, stats::Moments> collect_gradients(
      const SpaceSet& graded, const std::filesystem::path& work, const Watch& watch);

  model::Model& source_;
  model::Model& target_;
  const stats::Calibration* calibration_;
  std::optional<stats::Calibration> walked_;  // the same, in the batches that a walk takes
  AlignOptions options_;
  const maps::Method* method_ = nullptr;
  maps::Needs needs_;
  std::map<std::string, const stats::Matcher*> matchers_;
  std::map<std::string, int64_t> source_tokens_, target_tokens_;
  stats::Route route_;
  at::Tensor similarity_;
  bool same_words_ = true;  // or nothing to compare them by
  std::vector<Load> loads_;
  Seconds seconds_;
  Seconds solving_, handing_over_, storing_;  // spent beside the walk, by solving and by the sink
};

}  // namespace theseus::transport
