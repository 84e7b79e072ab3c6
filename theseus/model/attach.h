#pragma once

#include <map>
#include <string>
#include <vector>

#include "theseus/model/family.h"
#include "theseus/model/weights.h"
#include "theseus/update/adapter.h"

namespace theseus::model {

// Every spelling under which an adapter or a tuned checkpoint may know a tensor -> the model's own
// name of it.
std::map<std::string, std::string> spellings(const Architecture& architecture);
// Whole shape of every tensor by the model's own name: the parts of a fused one together.
std::map<std::string, std::vector<int64_t>> tensor_shapes(const Architecture& architecture);

// Finds the layer of `architecture` that each module of `adapter` belongs to and hands the adapter's
// tensors to `weights` under the model's own names. Throws InputError for a module the model does
// not have, or whose shape is another.
void attach_adapter(
    const Architecture& architecture, const update::Adapter& adapter, Weights& weights);

}  // namespace theseus::model
