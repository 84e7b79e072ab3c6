#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "theseus/cluster/place.h"

namespace theseus::cluster {

// Meets all processes and connects each with every other. GLOO_SOCKET_IFNAME chooses the network interface; without it,
// it is the one through which the first process is reached. Throws InputError when they do not come in time, when two have
// one rank, when they disagree on their number, or when the port is taken; and what c10d throws.
c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const Place& place);

}  // namespace theseus::cluster
