#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/family.h"
#include "theseus/stats/route.h"

namespace theseus::transport {

enum class Depth { kStretch, kDivided, kWhole };

// By which word --depth names it.
std::string word_of(Depth depth);
// Throws InputError that lists the words.
Depth parse_depth(const std::string& word);

// Whether a tower has more blocks in one model than in the other.
bool depths_differ(const model::Architecture& source, const model::Architecture& target);

// Towers of equal depth go block by block. The others:
// kStretch: the source is stretched to the target's depth: after its blocks come blocks with the
//   means of their neighbours' parameters (after the last: copies of it), then block by block.
//   Throws InputError when the target is shallower.
// kDivided: `similarity` [source blocks, target blocks] of all towers' blocks decides: the deeper
//   model's blocks are assigned to the shallower one's, in order, none left out, with the greatest
//   sum. A source block that serves several gives each an equal share of its update; a target block
//   that is served by several gets the sum.
// kWhole: likewise, but each gets the whole update. The shares of kDivided add up to what the source block
//   did; but what arrives in a model trained apart is weaker, and more of it does more.
stats::Route make_route(
    const model::Architecture& source,
    const model::Architecture& target,
    Depth depth,
    const at::Tensor& similarity);

// Throws InputError unless every number in the route is a block of these models.
void require_fits(
    const stats::Route& route,
    const model::Architecture& source,
    const model::Architecture& target);

// "0 1 1 2": for each of `deep` blocks the one of `shallow` it goes with, non-decreasing, onto, with
// the greatest sum of similarity [deep, shallow].
std::vector<int64_t> monotone_assignment(const at::Tensor& similarity);

}  // namespace theseus::transport
