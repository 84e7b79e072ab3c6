#pragma once

#include <functional>
#include <string_view>

#include "theseus/cluster/processes.h"

namespace theseus::cli {

// Throws when a launcher has started several processes: InputError in the first, EndedElsewhere in the
// others, which would only say the same.
void require_one_process(std::string_view what);

// Runs `body` with the processes that the launcher started, or alone. When it throws in one of them, all
// end with its exit status, and only one says why.
int run_together(const std::function<int(const cluster::Processes& processes)>& body);

// 2, 3 or 4, by whose fault it is; of what EndedElsewhere says, the other process's.
int status_of(const std::exception& error);

}  // namespace theseus::cli
