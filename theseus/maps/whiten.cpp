#include "theseus/maps/whiten.h"

#include <ATen/ATen.h>

#include "theseus/maps/gram.h"
#include "theseus/maps/problem.h"

namespace theseus::maps {

at::Tensor whitened_cross(const Problem& problem, const Options& options) {
  const auto p = options.whiten;
  auto cross = checked_cross(problem);
  if (p == 0) {
    return cross;
  }
  const auto source = spectrum(checked_source_gram(problem));
  const auto target = spectrum(checked_target_gram(problem));
  return source.power(-p).matmul(cross).matmul(target.power(-p));
}

}  // namespace theseus::maps
