#pragma once

#include "theseus/model/family.h"
#include "theseus/model/weights.h"
#include "theseus/update/adapter.h"

namespace theseus::model {

// Finds the layer of `architecture` that each module of `adapter` belongs to and hands the adapter's
// tensors to `weights` under the model's own names. Throws InputError for a module the model does
// not have, or whose shape is another.
void attach_adapter(
    const Architecture& architecture, const update::Adapter& adapter, Weights& weights);

}  // namespace theseus::model
