#include "theseus/train/lora.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/attach.h"
#include "theseus/train/random_values.h"

namespace theseus::train {

void begin_lora(
    const std::vector<std::string>& modules,
    int64_t rank,
    double alpha,
    uint64_t seed,
    const std::map<std::string, update::LowRank>& start,
    gradient::Trainable& trainable) {
  constexpr uint64_t kFirstStream = 1000;  // of random numbers, one for each module
  for (const auto& [module, factors] : start) {
    require(
        std::find(modules.begin(), modules.end(), module) != modules.end(),
        "--start-from: ", module, " is in the adapter and not among the layers that --lora is on");
  }
  const auto shapes = model::tensor_shapes(trainable.model().architecture());
  uint64_t stream = kFirstStream;
  for (const auto& module : modules) {
    const auto& shape = shapes.at(module + ".weight");
    require(
        rank <= std::min(shape[0], shape[1]), "--lora ", rank, ": ", module, " is ",
        at::IntArrayRef(shape), ", which has no more than rank ", std::min(shape[0], shape[1]));
    const auto bound = 1 / std::sqrt(static_cast<double>(shape[1]));
    const auto found = start.find(module);
    trainable.adapt(
        module, found != start.end()
                    ? found->second
                    : update::LowRank{
                          .up = at::zeros({shape[0], rank}),
                          .down = random_uniform({rank, shape[1]}, bound, seed, stream),
                          .scale = alpha / static_cast<double>(rank)});
    ++stream;
  }
}

}  // namespace theseus::train
