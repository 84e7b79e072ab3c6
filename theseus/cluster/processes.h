#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/base/error.h"
#include "theseus/cluster/place.h"

namespace theseus::cluster {

// What goes from process to process.
struct Parcel {
  std::string text;
  std::vector<at::Tensor> tensors;
};

// The processes of one job, over c10d's Gloo. All must call the same functions in the same order. When one has ended, or does
// not answer in time, every call of the others throws InputError. Functions are for one thread.
class Processes {
 public:
  // Alone: no function of c10d is called, and sums, texts and parcels are what this process gives.
  Processes();
  // Meets the others: connect().
  explicit Processes(const Place& place);
  ~Processes();
  Processes(Processes&& other) noexcept;
  Processes& operator=(Processes&& other) noexcept;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  int here() const { return place_.local_size; }       // those on this machine
  int rank_here() const { return place_.local_rank; }  // among them
  bool first() const { return place_.first(); }
  bool alone() const { return place_.alone(); }

  // Sums over all processes, in place; float64 or int64, of equal shapes, on any device. Their order
  // is another one than that of one process.
  void sum(at::Tensor& tensor) const;
  // What the first process gave; the others' is not looked at.
  std::string from_first(const std::string& text) const;
  Parcel from_first(const Parcel& parcel) const;
  // The first process's file, under `path` on all the others' machines.
  void copy_from_first(const std::filesystem::path& path) const;
  // A parcel from every process but the first, by rank, in the first one; elsewhere nothing. Tensors
  // come on the CPU.
  std::vector<Parcel> gather_in_first(const Parcel& mine) const;

 private:
  struct Group;

  Place place_;
  std::unique_ptr<Group> group_;
};

// One process, for callers that were given none.
const Processes& alone();

}  // namespace theseus::cluster
