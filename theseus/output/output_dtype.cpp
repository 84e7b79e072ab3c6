#include "theseus/output/output_dtype.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/machine/suggest.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;

constexpr std::pair<const char*, OutputDtype> kOutputDtypes[] = {
    {"auto", OutputDtype::kAuto},
    {"target", OutputDtype::kTarget},
    {"float32", OutputDtype::kFloat32},
    {"bfloat16", OutputDtype::kBFloat16},
    {"float16", OutputDtype::kFloat16}};

// An update of which more is lost has vanished: what is left are entries that happened to be near zero, or near the
// middle between two numbers.
constexpr double kVanished = 0.99;
// A smaller one, beside the weights, is below half a unit of float32, whatever it is stored in.
constexpr double kUnseen = 0x1p-24;

bool is_half(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16;
}

at::ScalarType scalar_type_of(OutputDtype dtype) {
  return dtype == OutputDtype::kBFloat16  ? at::kBFloat16
         : dtype == OutputDtype::kFloat16 ? at::kHalf
                                          : at::kFloat;
}

const char* word_of(OutputDtype dtype) {
  const auto* found = std::find_if(
      std::begin(kOutputDtypes), std::end(kOutputDtypes),
      [&](const auto& known) { return known.second == dtype; });
  return found->first;
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string share_of_square(double lost) {
  return lost >= 1 ? "all" : percent(lost);
}

std::string sizes_in_words(const Addition& addition) {
  return c10::str(
      " the norm ", std::sqrt(addition.norm_squared), ", beside weights with the norm ",
      std::sqrt(addition.base_squared));
}

// `unseen`: the share of the weights' norm that an update must have.
void require_seen(
    const Addition& addition, double unseen, const std::string& what, const char* advice) {
  require(
      addition.norm_squared > unseen * unseen * addition.base_squared, "nothing of ", what,
      sizes_in_words(addition), "; give ", advice);
}

void require_held(
    const Addition& addition, at::ScalarType stored, const std::string& what, const char* advice) {
  require(
      addition.lost() < kVanished, "nothing of ", what, sizes_in_words(addition),
      ", and rounding to ", dtype_name(stored), " takes ", share_of_square(addition.lost()),
      " of its square; give ", advice, is_half(stored) ? ", or a wider --output-dtype" : "");
}

constexpr const char* kLearnt = "what was learnt arrives: it has";
constexpr const char* kLearnMore = "a larger --lr or more --steps";

}  // namespace

OutputDtype parse_output_dtype(const std::string& word) {
  for (const auto& [name, dtype] : kOutputDtypes) {
    if (word == name) {
      return dtype;
    }
  }
  constexpr const char* kKnown = "auto target float32 bfloat16 float16";
  throw InputError(c10::str(
      "--output-dtype: '", word, "' is none of: ", kKnown, machine::did_you_mean(word, kKnown)));
}

at::ScalarType main_dtype(const ModelLayout& layout) {
  std::map<at::ScalarType, int64_t> elements;
  for (const auto& entry : layout.entries) {
    if (at::isFloatingType(entry.dtype)) {
      elements[entry.dtype] += c10::multiply_integers(entry.shape);
    }
  }
  const auto most = std::max_element(
      elements.begin(), elements.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  return most == elements.end() ? at::kFloat : most->first;
}

std::string dtype_name(at::ScalarType dtype) {
  return dtype == at::kHalf       ? "float16"
         : dtype == at::kBFloat16 ? "bfloat16"
         : dtype == at::kFloat    ? "float32"
         : dtype == at::kDouble   ? "float64"
                                  : c10::toString(dtype);
}

ModelLayout with_dtype(ModelLayout layout, OutputDtype dtype) {
  if (dtype == OutputDtype::kAuto || dtype == OutputDtype::kTarget) {
    return layout;
  }
  const auto wanted = scalar_type_of(dtype);
  const auto main = main_dtype(layout);
  for (auto& entry : layout.entries) {
    const bool changes =
        wanted == at::kFloat ? is_half(entry.dtype) : entry.dtype == main && main != at::kDouble;
    entry.dtype = changes ? wanted : entry.dtype;
  }
  return layout;
}

bool has_halves(const ModelLayout& layout) {
  return std::any_of(layout.entries.begin(), layout.entries.end(), [](const auto& entry) {
    return is_half(entry.dtype);
  });
}

Storage choose_storage(
    const model::Model& target,
    OutputDtype asked,
    const std::function<Addition(const ModelLayout&)>& measure) {
  auto own = layout_of(target);
  Storage storage{.asked = asked, .own = main_dtype(own)};
  auto dtype = asked;
  if (asked == OutputDtype::kAuto && has_halves(own)) {
    const auto lost = measure(own).lost();
    if (lost > kMuchLost) {
      storage.would_lose = lost;
      dtype = OutputDtype::kFloat32;
    }
  }
  storage.layout = with_dtype(std::move(own), dtype);
  storage.written = main_dtype(storage.layout);
  return storage;
}

Addition try_adding(
    const model::Model& target, const ModelLayout& layout, const Deltas& deltas, double alpha) {
  std::map<std::string, at::ScalarType> dtypes;  // by stored name
  for (const auto& entry : layout.entries) {
    dtypes[entry.name] = entry.dtype;
  }
  Addition all;
  std::set<std::string> seen;
  for (const auto& parameter : target.architecture().parameters) {
    if (!seen.insert(parameter.tensor).second) {
      continue;
    }
    if (const auto delta = deltas(parameter.tensor); delta.defined()) {
      const auto base = target.checkpoint().tensor(parameter.stored);
      all.add(add_delta(base, delta, alpha, dtypes.at(parameter.stored)).addition);
      target.checkpoint().forget(parameter.stored);
    }
  }
  return all;
}

ordered_json plan_storage(const model::Model& target, OutputDtype asked) {
  const auto own = layout_of(target);
  const auto main = main_dtype(own);
  const bool open = asked == OutputDtype::kAuto && has_halves(own);
  const auto written =
      open ? fmt::format(
                 "{}, or float32 where more than {:.0f} % of the update's square would be lost to "
                 "rounding",
                 dtype_name(main), 100 * kMuchLost)
           : dtype_name(main_dtype(with_dtype(own, asked)));
  return {{"asked", word_of(asked)}, {"target", dtype_name(main)}, {"written", written}};
}

ordered_json describe_storage(const Storage& storage, double lost) {
  ordered_json about = {
      {"asked", word_of(storage.asked)},
      {"target", dtype_name(storage.own)},
      {"written", dtype_name(storage.written)},
      {"lost", lost}};
  if (storage.would_lose > 0) {
    about["would_be_lost"] = storage.would_lose;
  }
  return about;
}

std::vector<std::string> notes_on_storage(
    const Storage& storage, double lost, const std::string& whose) {
  const auto own = dtype_name(storage.own), written = dtype_name(storage.written);
  std::vector<std::string> notes;
  if (storage.would_lose > 0) {
    notes.push_back(c10::str(
        "the output is stored in float32: in the ", whose, "'s ", own, " ",
        share_of_square(storage.would_lose),
        " of the update's square would be lost to rounding; '--output-dtype target' writes ", own,
        " all the same"));
  } else if (storage.written != storage.own) {
    notes.push_back(c10::str(
        "the output is stored in ", written, ", as was asked for; the ", whose, " is ", own));
  }
  if (lost > kMuchLost && is_half(storage.written)) {
    notes.push_back(c10::str(
        share_of_square(lost), " of the update's square is lost to rounding in ", written,
        "; '--output-dtype float32' keeps it"));
  } else if (lost > kMuchLost) {
    notes.push_back(c10::str(
        share_of_square(lost), " of the update's square is lost to rounding even in ", written,
        ": it is that small beside the weights"));
  }
  return notes;
}

void require_not_zero(const Addition& addition) {
  require(
      addition.norm_squared > 0,
      "nothing of the update is left: everything that would be added is zero");
}

void require_arrival(const Addition& addition, double alpha, at::ScalarType stored) {
  const auto what = c10::str("the update arrives: times alpha ", alpha, " it has");
  constexpr const char* kAdvice = "a larger --alpha";
  require_seen(addition, stored == at::kDouble ? 0 : kUnseen, what, kAdvice);
  require_held(addition, stored, what, kAdvice);
}

bool is_seen(const Addition& addition) {
  return addition.norm_squared > kUnseen * kUnseen * addition.base_squared;
}

void require_learnt(const Addition& learnt, at::ScalarType stored) {
  require_seen(learnt, stored == at::kDouble ? 0 : kUnseen, kLearnt, kLearnMore);
}

void require_stored(const Addition& learnt, at::ScalarType stored) {
  require_held(learnt, stored, kLearnt, kLearnMore);
}

std::vector<std::string> notes_on_size(const Addition& addition) {
  if (addition.norm_squared <= addition.base_squared) {
    return {};
  }
  return {fmt::format(
      "the update is larger than the weights that it is added to (norm {:.3g}, theirs {:.3g}): "
      "little of the target is left; a tune usually is a small part of the weights, so look at "
      "--alpha and at the tuned model",
      std::sqrt(addition.norm_squared), std::sqrt(addition.base_squared))};
}

}  // namespace theseus::output
