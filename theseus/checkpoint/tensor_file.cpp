#include "theseus/checkpoint/tensor_file.h"

namespace theseus::checkpoint {

int64_t TensorInfo::elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    product *= extent;
  }
  return product;
}

}  // namespace theseus::checkpoint
