#include "theseus/data/idx.h"

namespace theseus::data::sources {
namespace {

bool recognises(const std::filesystem::path& path) {
  return recognises_idx(path, {"mnist"});
}

Examples open(const std::filesystem::path& path, const std::string& split) {
  return open_idx(
      path, split, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
      {"a photo of the number: \"{c}\"."});
}

}  // namespace

const Source& mnist() {
  static const Source source = {
      .summary = "MNIST: {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
