#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/model/model.h"
#include "theseus/output/output_dtype.h"
#include "theseus/train/adamw.h"
#include "theseus/train/head.h"

namespace theseus::train {

struct WrittenTuned {
  std::vector<std::string> files;
  output::Addition learnt;            // tuned - base, of what the base has
  at::ScalarType dtype = at::kFloat;  // of the weights
  nlohmann::ordered_json storage;     // see output::describe_storage
  std::vector<std::string> notes;     // on that
  std::vector<std::string> left_out;  // side files that a reader may miss, and why
};

// Writes the base with `values` (by own tensor names) in place of its own into `directory`, in the base's
// own layout, and in the base's dtypes or in others (see output::choose_storage), which the config then says. Side files
// are copied bit for bit, and so are other tensors in the base's dtypes. With a new head the config beside them says so, names get the prefix that the family's library gives an encoder
// with a head, and heads for other purposes are left out. A head beside the encoder is written beside it.
// Throws InputError when it cannot be written, NumericError when a value is not finite in its dtype.
WrittenTuned write_tuned(
    const model::Model& base,
    const Tensors& values,
    const Head& head,
    output::OutputDtype dtype,
    const std::filesystem::path& directory);

// What rounding `value` to `dtype` does to what was learnt since `before`.
output::Addition addition_of(
    const at::Tensor& before, const at::Tensor& value, at::ScalarType dtype);

// The name of a tensor or module in a model with a new head.
std::string name_with_head(
    const model::Architecture& architecture, const Head& head, const std::string& name);

}  // namespace theseus::train
