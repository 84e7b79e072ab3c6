#pragma once

namespace theseus {

// To the system. The C library keeps what is freed in pieces of up to some tens of megabytes, as most tensors are; between
// two phases of a job that is as much as either needs.
void give_back_freed_memory();

}  // namespace theseus
