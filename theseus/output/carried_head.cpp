#include "theseus/output/carried_head.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/output/feature_space.h"
#include "theseus/output/side_files.h"

namespace theseus::output {

std::optional<SentenceHead> carry_sentence_head(const JobOptions& options, const Opened& opened) {
  const auto& target = opened.target.architecture();
  if (!opened.alignment || target.head_task != model::kBareEncoder ||
      has_sentence_head(directory_of(opened.target.location()))) {
    return std::nullopt;
  }
  auto head = find_sentence_head(options.tuned);
  const auto map = opened.alignment->find_map(feature_space(target));
  if (!head || !map.defined()) {
    return std::nullopt;
  }
  require(
      head->weight.size(1) == map.size(0), "the head beside ", options.tuned.string(), " reads ",
      head->weight.size(1), " numbers and the alignment's map of ", feature_space(target),
      " is from ", map.size(0));
  head->weight = head->weight.matmul(map.to(at::kCPU, at::kFloat));
  return head;
}

}  // namespace theseus::output
