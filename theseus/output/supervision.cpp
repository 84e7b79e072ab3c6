#include "theseus/output/supervision.h"

#include <map>
#include <set>

#include "theseus/base/error.h"
#include "theseus/base/units.h"
#include "theseus/maps/method.h"
#include "theseus/transport/schedule.h"

namespace theseus::output {
namespace {

using gradient::Mask;
using nlohmann::ordered_json;
using transport::Disposition;

constexpr int64_t kFloat = 4;   // bytes
constexpr int64_t kDouble = 8;  // of moments

// What layers of the target write, each space once.
std::set<std::string> written(const model::Architecture& target) {
  std::set<std::string> spaces;
  for (const auto& layer : target.linears) {
    spaces.insert(layer.out.begin(), layer.out.end());
  }
  return spaces;
}

int64_t moment_bytes(const Opened& opened, const transport::SpaceSet& needed) {
  std::map<std::string, int64_t> widths;  // of the source, by role
  for (const auto& [name, space] : opened.source.architecture().spaces) {
    widths[model::role_of(name)] = space.width;
  }
  int64_t bytes = 0;
  for (const auto& space : written(opened.target.architecture())) {
    if (needed.contains(space)) {
      bytes += widths[model::role_of(space)] * opened.target.architecture().spaces.at(space).width *
               kDouble;
    }
  }
  return bytes;
}

// Weights of the target, and of what is carried a leaf, its gradient and its votes; 0 without a mask.
int64_t mask_bytes(
    const JobOptions& options, const Opened& opened, const std::vector<Disposition>& plan) {
  if (mask_of(options) == Mask::kNone) {
    return 0;
  }
  const int64_t copies = options.vote == gradient::Vote::kMajority ? 3 : 2;
  auto bytes = opened.target.parameter_count() * kFloat;
  for (const auto& row : plan) {
    int64_t elements = row.carried ? 1 : 0;
    for (const auto extent : row.target->shape) {
      elements *= extent;
    }
    bytes += elements * kFloat * copies;
  }
  return bytes;
}

// Weights of both models and the moments of all gradients; 0 for other methods.
int64_t output_bytes(
    const JobOptions& options, const Opened& opened, const std::vector<Disposition>& plan) {
  if (opened.alignment || !maps::method(options.align.method).needs.gradients) {
    return 0;
  }
  return (opened.source.parameter_count() + opened.target.parameter_count()) * kFloat +
         moment_bytes(opened, transport::spaces_of(plan));
}

}  // namespace

Mask mask_of(const JobOptions& options) {
  const bool own = options.alignment.empty() && maps::method(options.align.method).masks;
  return options.mask == Mask::kNone && own ? Mask::kNormal : options.mask;
}

bool needs_labels(const JobOptions& options) {
  return mask_of(options) != Mask::kNone ||
         (options.alignment.empty() && maps::method(options.align.method).needs.gradients);
}

void require_labels_allowed(const JobOptions& options) {
  if (!needs_labels(options)) {
    return;
  }
  const auto what =
      maps::method(options.align.method).masks || maps::method(options.align.method).needs.gradients
          ? "method " + options.align.method
          : std::string("--mask");
  require(
      options.labels, what,
      " learns from labels, which others do without: give the examples that have them as "
      "--labelled");
  require(
      options.alignment.empty(), what,
      " needs labelled examples, and with --alignment there are none; leave --alignment out");
  require(
      !options.calibration.empty(), "--labelled is required: ", what,
      " learns from labelled examples");
  require(
      options.labelled.empty() || !maps::method(options.align.method).needs.gradients, what,
      " takes activations and gradients of the same examples; give --labelled alone");
}

void require_memory_for_labels(
    const JobOptions& options, const Opened& opened, const std::vector<Disposition>& plan) {
  const auto memory = options.align.memory > 0
                          ? options.align.memory
                          : transport::available_memory(options.placement.device);
  for (const auto& [what, bytes] :
       {std::pair("--mask", mask_bytes(options, opened, plan)),
        std::pair("gradient-output", output_bytes(options, opened, plan))}) {
    require(
        bytes <= memory, what, " needs ", bytes_text(bytes), " for weights and gradients at once, ",
        "beside activations, and ", options.align.memory > 0 ? "--memory allows " : "there are ",
        bytes_text(memory), "; procrustes takes block by block");
  }
}

std::vector<std::string> notes_on_labels(
    const JobOptions& options, const Opened& opened, const std::vector<Disposition>& plan) {
  std::vector<std::string> notes;
  const auto* labelled = opened.find_labelled();
  const auto examples = labelled != nullptr ? labelled->sequences() : 0;
  const auto& drawn = opened.labelled ? opened.labelled_drawn : opened.drawn;
  if (needs_labels(options) && drawn.is_null() && labelled != nullptr &&
      labelled->find_answer(stats::Side::kTarget, "labels").defined() &&
      !labelled->classes(stats::Side::kTarget).defined()) {
    notes.emplace_back(
        "the labels of the examples are numbers: label i was taken for class i of the head");
  }
  if (const auto bytes = mask_bytes(options, opened, plan); bytes > 0) {
    const bool majority = options.vote == gradient::Vote::kMajority;
    notes.push_back(c10::str(
        "labels are used: the target goes back over ", examples, " examples",
        majority ? ", one by one," : "", " with all of its weights in memory, ", bytes_text(bytes),
        " beside the activations of ", majority ? "one of them" : "a batch"));
  }
  if (const auto bytes = output_bytes(options, opened, plan); bytes > 0) {
    notes.push_back(c10::str(
        "labels are used: both models go back over ", examples,
        " examples with all of their weights and the moments of all gradients in memory, ",
        bytes_text(bytes), " beside the activations of a batch"));
  }
  return notes;
}

std::vector<std::string> notes_on_gradients(
    const JobOptions& options, const Opened& opened, const ordered_json& spaces) {
  if (opened.alignment || !maps::method(options.align.method).needs.gradients) {
    return {};
  }
  const auto outputs = written(opened.target.architecture());
  std::map<std::string, int64_t> missed;
  for (const auto& row : spaces) {
    const auto space = row.at("space").get<std::string>();
    if (outputs.contains(space) && !row.contains("statistics")) {
      ++missed[model::role_of(space)];
    }
  }
  std::vector<std::string> notes;
  for (const auto& [role, count] : missed) {
    notes.push_back(c10::str(
        role, count > 1 ? c10::str(" (", count, " times)") : "",
        ": the loss does not reach it, so its map is that of procrustes"));
  }
  return notes;
}

}  // namespace theseus::output
