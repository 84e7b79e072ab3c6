#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "theseus/cluster/place.h"

namespace theseus::cluster {

// Connects every process with every other. GLOO_SOCKET_IFNAME chooses the network interface; without
// it, it is the one through which the first process is reached. Throws what c10d throws.
c10::intrusive_ptr<c10d::ProcessGroupGloo> make_gloo(
    const Place& place, const c10::intrusive_ptr<c10d::Store>& store);

}  // namespace theseus::cluster
