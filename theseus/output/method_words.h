#pragma once

#include <string>

#include "theseus/output/job.h"

namespace theseus::output {

// A method with options of its own in one word, as rows of a comparison are named:
//
//   procrustes:center:whiten=0.5     procrustes:stream     procrustes:mask=force:vote=majority
//
// Options are center, whiten=P, ridge=L, rank=WORD, stream, mask[=WORD] and vote=WORD, as those of
// 'theseus transport'. Sets them in `job`. Throws InputError for what is none, or has no effect.
void set_method(const std::string& words, JobOptions& job);

// The method alone.
const maps::Method& method_of(const std::string& words);

}  // namespace theseus::output
