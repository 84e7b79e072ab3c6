#include "theseus/data/idx.h"

namespace theseus::data::sources {
namespace {

bool recognises(const std::filesystem::path& path) {
  return recognises_idx(path, {"fashion_mnist", "fashion-mnist", "fashionmnist"});
}

Examples open(const std::filesystem::path& path, const std::string& split) {
  return open_idx(
      path, split,
      {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
       "Ankle boot"},
      {"a photo of a {c}.", "a photo of the {c}."});
}

}  // namespace

const Source& fashion_mnist() {
  static const Source source = {
      .summary = "Fashion-MNIST: files as MNIST's, in a folder called fashion_mnist or named",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
