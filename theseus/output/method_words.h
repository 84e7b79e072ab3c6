#pragma once

#include <string>

#include "theseus/output/job.h"

namespace theseus::output {

// A method with options of its own in one word:
//
//   procrustes:center:whiten=0.5    stream:rank=truncate    procrustes:mask=force:vote=majority
//
// Options are center, whiten=P, ridge=L, rank=WORD, statistics=WORD, stream, mask[=WORD]
// and vote=WORD; see docs/transport.md. Sets them in `job`. Throws InputError for what is none, or
// has no effect.
void set_method(const std::string& words, JobOptions& job);

// The method in such a word, with those options that decide maps.
std::string method_words(const transport::AlignOptions& align);

// The method alone.
const maps::Method& method_of(const std::string& words);

}  // namespace theseus::output
