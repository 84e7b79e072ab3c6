// The first byte says what follows: 'p' a pickle, anything else a file of torch.save.
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "theseus/base/error.h"
#include "theseus/checkpoint/dtype.h"
#include "theseus/checkpoint/pickle.h"
#include "theseus/checkpoint/torch_archive.h"

namespace theseus::checkpoint {
namespace {

// Visits everything that can be reached from the root.
void walk(const Pickle& pickle) {
  std::vector<Pickle::Value> left = {pickle.root()};
  std::unordered_set<uint32_t> seen;
  while (!left.empty()) {
    const auto value = left.back();
    left.pop_back();
    if (!seen.insert(value.index).second) {
      continue;
    }
    const auto kind = pickle.kind(value);
    if (kind == PickleKind::kTensor) {
      pickle.tensor(value);
    } else if (
        kind == PickleKind::kList || kind == PickleKind::kTuple || kind == PickleKind::kDict) {
      const auto items = pickle.items(value);
      left.insert(left.end(), items.begin(), items.end());
    }
  }
}

// The bytes that a reader of the tensor would touch are inside the file.
void check_extent(const ArchivedTensor& tensor, size_t size) {
  if (tensor.bytes == 0) {
    return;
  }
  int64_t last = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  const auto end =
      tensor.begin + static_cast<size_t>((last + 1) * find_dtype(tensor.dtype)->bits / 8);
  require<InternalError>(tensor.begin < size && end <= size, "a tensor leaves the file");
}

}  // namespace
}  // namespace theseus::checkpoint

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace theseus::checkpoint;
  if (size == 0) {
    return 0;
  }
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  try {
    if (data[0] == 'p') {
      walk(Pickle(file, "fuzz"));
    } else {
      for (const auto& tensor : read_torch_archive(file, "fuzz").tensors) {
        check_extent(tensor, file.size());
      }
    }
  } catch (const theseus::InputError&) {
  }
  return 0;
}
