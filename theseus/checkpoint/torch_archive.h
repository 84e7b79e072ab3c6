#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::checkpoint {

// One tensor of a state dict as a strided view of the archive's own bytes.
struct ArchivedTensor {
  std::string name;
  std::string_view dtype;  // one of all_dtypes()
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, not negative, as many as extents
  size_t begin = 0;              // byte position of the first element in the file
  int64_t bytes = 0;             // of the elements
  std::string storage;           // see TensorInfo
};

struct TorchArchive {
  std::vector<ArchivedTensor> tensors;  // sorted by name
  std::string note;                     // see TensorFile::note
};

// Whether the file begins as one that torch.save writes, now or before 1.6.
bool begins_like_torch(std::span<const std::byte> file);

// Reads the state dict of a whole file that torch.save wrote, without running its pickle. The dict
// may stand at the top or under one of the usual keys (see kStateDictKeys); the note says which,
// and what else was there. On return every view lies inside its storage and has at most as many
// elements. Throws InputError, which names `origin`: for a damaged file, a format that is not read
// (before 1.6, TorchScript, big-endian), a pickle that asks for more than data, no tensors.
TorchArchive read_torch_archive(std::span<const std::byte> file, const std::string& origin);

// Keys under which training scripts nest a state dict, the first that holds tensors wins. They come
// before the top level itself: next to a nested one, a tensor there is a random state or a counter.
constexpr std::string_view kStateDictKeys[] = {"state_dict", "model",          "model_state_dict",
                                               "ema",        "ema_state_dict", "module"};

}  // namespace theseus::checkpoint
