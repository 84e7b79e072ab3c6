#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "theseus/cluster/place.h"

namespace theseus::cluster {

// The store where processes find each other and say how the job ended. The first process keeps it,
// unless its launcher does.
class Meeting {
 public:
  // Comes, and waits for the others. See Processes.
  explicit Meeting(const Place& place);

  // For what else has to be agreed on under names of its own.
  c10::intrusive_ptr<c10d::Store> store(const std::string& name) const;

  // The exit status that another process has ended the job with. Throws InputError when the store is
  // gone, and with it the first process.
  std::optional<int> find_end() const;
  // See Processes. finish() returns what find_end() finds while it waits.
  bool fail(int status) const;
  std::optional<int> finish() const;

 private:
  void wait_for_all() const;
  void leave() const;
  void wait_for_others(std::chrono::seconds at_most) const;

  Place place_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace theseus::cluster
