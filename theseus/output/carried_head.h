#pragma once

#include <optional>

#include "theseus/output/opened.h"
#include "theseus/output/sentence_head.h"

namespace theseus::output {

// The head beside a tuned bare encoder, for the target: W T, with T the alignment's map of what it reads, and the same
// bias. None where there is no such head, where the target is no bare encoder or has a head of its own, and where
// the maps are made on the way or the alignment has none of that space. Throws InputError for a head of another width.
std::optional<SentenceHead> carry_sentence_head(const JobOptions& options, const Opened& opened);

}  // namespace theseus::output
