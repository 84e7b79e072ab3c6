#pragma once

#include <map>
#include <set>
#include <string>

#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"
#include "theseus/stats/matcher.h"

namespace theseus::transport {

// Throws InputError unless both are of one family with the same towers.
void require_one_family(const model::Model& source, const model::Model& target);

// The matcher of each tower: `word`, or, when empty, grid for images, and for text offsets where the
// calibration says what text a token stands for, tokens otherwise. Text towers beside an image tower
// keep that. Throws InputError when no tower can be matched that way.
std::map<std::string, const stats::Matcher*> matchers_of(
    const model::Architecture& target, const std::string& word, bool spans_known = false);

// Throws InputError where tokens are paired and the two vocabularies differ: in size, or in the
// tokenizer files that lie beside the models. False when there are none to tell.
bool require_one_vocabulary(
    const model::Model& source,
    const model::Model& target,
    const stats::Calibration& calibration,
    const std::map<std::string, const stats::Matcher*>& matchers);

// Whether tokenizer files lie beside both models and are the same.
bool has_same_tokenizer(const model::Model& source, const model::Model& target);

// Which towers the calibration's first batch reaches, with the tokens a sequence has there. Throws
// InputError when the batch does not fit the model. `side`: "source" or "target", for messages.
std::map<std::string, int64_t> tokens_by_tower(
    model::Model& model, std::string_view side, const model::Batch& batch);

}  // namespace theseus::transport
