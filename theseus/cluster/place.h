#pragma once

#include <cstdint>
#include <string>

namespace theseus::cluster {

// Which of several processes this one is, as launchers such as torchrun say it in the environment:
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; LOCAL_RANK and LOCAL_WORLD_SIZE count those of one
// machine.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;        // they share its processors and memory
  std::string address = {};  // of the process with rank 0, and where it listens
  uint16_t port = 0;
  // Somebody else keeps the store there: torchrun does. Names in it begin with this.
  bool store_is_there = false;
  std::string prefix = "theseus";
  double meet_seconds = 300;   // THESEUS_MEET_SECONDS: to wait for the others at the start
  double wait_seconds = 1800;  // THESEUS_WAIT_SECONDS: to wait for another one later

  bool alone() const { return size == 1; }
  bool first() const { return rank == 0; }
};

// Alone when WORLD_SIZE is not set or 1; then nothing else is looked at. Throws InputError when a
// variable is missing or is not what it should be.
Place find_place();

}  // namespace theseus::cluster
