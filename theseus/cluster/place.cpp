#include "theseus/cluster/place.h"

#include <algorithm>
#include <cstdlib>

#include "theseus/base/error.h"

namespace theseus::cluster {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// -1: not set.
int number(const char* name, int most) {
  const auto text = variable(name);
  if (text.empty()) {
    return -1;
  }
  const bool digits = text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
  require(
      digits && std::stoi(text) <= most, name, " is '", text, "' in the environment; expected ",
      "a number from 0 to ", most);
  return std::stoi(text);
}

double seconds(const char* name, double otherwise) {
  const auto found = number(name, 1 << 20);
  require(found != 0, name, " is 0 in the environment; expected seconds from 1 on");
  return found < 0 ? otherwise : found;
}

constexpr int kMostProcesses = 1 << 16;
constexpr const char* kHint =
    "a launcher such as torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; without "
    "WORLD_SIZE this runs as one process";

}  // namespace

Place find_place() {
  Place place;
  const auto size = number("WORLD_SIZE", kMostProcesses);
  require(size != 0, "WORLD_SIZE is 0 in the environment; ", kHint);
  if (size <= 1) {
    return place;
  }
  const auto rank = number("RANK", kMostProcesses), port = number("MASTER_PORT", 65535);
  const auto local = number("LOCAL_RANK", kMostProcesses);
  require(rank >= 0, "WORLD_SIZE is ", size, " in the environment, and RANK is not set; ", kHint);
  require(
      rank < size, "RANK is ", rank, " in the environment, and WORLD_SIZE is ", size,
      ": ranks go from 0 to ", size - 1);
  place.address = variable("MASTER_ADDR");
  require(
      !place.address.empty(), "WORLD_SIZE is ", size,
      " in the environment, and MASTER_ADDR is not set; ", kHint);
  require(
      port > 0, "WORLD_SIZE is ", size, " in the environment, and MASTER_PORT ",
      port == 0 ? "is 0" : "is not set", "; ", kHint);
  place.rank = rank;
  place.size = size;
  place.local_rank = local < 0 ? 0 : local;
  place.local_size = std::max(1, number("LOCAL_WORLD_SIZE", kMostProcesses));
  place.port = static_cast<uint16_t>(port);
  place.meet_seconds = seconds("THESEUS_MEET_SECONDS", place.meet_seconds);
  place.wait_seconds = seconds("THESEUS_WAIT_SECONDS", place.wait_seconds);
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    // The launcher's store outlives us: what an earlier try left in it must not be taken for ours.
    place.store_is_there = true;
    place.prefix =
        "theseus/" + variable("TORCHELASTIC_RUN_ID") + "/" + variable("TORCHELASTIC_RESTART_COUNT");
  }
  return place;
}

}  // namespace theseus::cluster
