#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "theseus/model/model.h"
#include "theseus/output/add_delta.h"
#include "theseus/output/deltas.h"
#include "theseus/output/layout.h"

namespace theseus::output {

// What a merged model is stored in. kTarget: the dtypes of the target. kAuto: the same, but float32 where more
// than kMuchLost of the update's square would be lost to rounding.
enum class OutputDtype { kAuto, kTarget, kFloat32, kBFloat16, kFloat16 };

constexpr double kMuchLost = 0.05;

// Throws InputError for another word than auto, target, float32, bfloat16 and float16.
OutputDtype parse_output_dtype(const std::string& word);

// The dtype that most of a model's floating point numbers are stored in.
at::ScalarType main_dtype(const ModelLayout& layout);
// "float16".
std::string dtype_name(at::ScalarType dtype);

// The same layout with other dtypes. kFloat32 widens whatever is stored in half precision; the half precisions take
// the place of the main dtype alone, so that what a model keeps in float32 beside it stays so. float64,
// integers and other kinds stay as they are. kAuto is kTarget.
ModelLayout with_dtype(ModelLayout layout, OutputDtype dtype);

// Whether kAuto has a choice: something is stored in half precision.
bool has_halves(const ModelLayout& layout);

// How a model is stored, and why.
struct Storage {
  OutputDtype asked = OutputDtype::kAuto;
  ModelLayout layout;
  at::ScalarType own = at::kFloat;      // the target's main dtype
  at::ScalarType written = at::kFloat;  // the output's
  double would_lose = 0;  // where kAuto went for float32: the share lost in the target's own dtypes
};

// `measure` tells what adding the update does in a layout; it is asked where kAuto has a choice.
Storage choose_storage(
    const model::Model& target,
    OutputDtype asked,
    const std::function<Addition(const ModelLayout&)>& measure);

// What adding all of `deltas` to the target would do. Reads both.
Addition try_adding(
    const model::Model& target, const ModelLayout& layout, const Deltas& deltas, double alpha);

// Before anything is carried: {"asked", "target", "written"}, of kAuto in words where it has a choice.
nlohmann::ordered_json plan_storage(const model::Model& target, OutputDtype asked);
// Of the record: {"asked", "target", "written", "lost", and where float32 was chosen "would_be_lost"}.
nlohmann::ordered_json describe_storage(const Storage& storage, double lost);
// What a reader should know of it; empty where little is lost and nothing was asked for. `whose`: the model that the
// update is added to.
std::vector<std::string> notes_on_storage(
    const Storage& storage, double lost, const std::string& whose = "target");

// Throws InputError when nothing of an update arrives in `stored`, or so little that it is none.
void require_arrival(const Addition& addition, double alpha, at::ScalarType stored);
// The two halves of it for what a training learnt: that there is something, and that `stored` can hold it.
void require_learnt(const Addition& learnt, at::ScalarType stored);
void require_stored(const Addition& learnt, at::ScalarType stored);
// Whether an update is so large beside the weights that float32 can hold it.
bool is_seen(const Addition& addition);
// The same of an update alone, which is neither scaled nor rounded: only zeros are nothing.
void require_not_zero(const Addition& addition);
// A warning where the update is larger than the weights that it is added to.
std::vector<std::string> notes_on_size(const Addition& addition);

}  // namespace theseus::output
