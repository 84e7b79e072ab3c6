#include "tests/support/images.h"

#include <span>
#include <sstream>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/checkpoint.h"

#include "tests/support/scratch_dir.h"

namespace theseus::tests {
namespace {

const checkpoint::Checkpoint& golden() {
  static const auto opened = checkpoint::Checkpoint::open(image_path("golden.safetensors"));
  return opened;
}

}  // namespace

std::filesystem::path image_path(const std::string& name) {
  return std::filesystem::path(THESEUS_SOURCE_DIR) / "tests/fixtures/data/images" / name;
}

std::string image_bytes(const std::string& name) {
  return read_bytes(image_path(name));
}

data::Image decode(const std::string& bytes, const std::string& name) {
  return data::decode_image(std::as_bytes(std::span(bytes)), name);
}

std::vector<std::string> golden_names(const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& tensor : golden().tensors()) {
    if (tensor.name.rfind(prefix, 0) == 0) {
      names.push_back(tensor.name);
    }
  }
  return names;
}

data::Image golden_image(const std::string& name) {
  return {golden().tensor(name).clone()};
}

std::vector<std::string> words(const std::string& name) {
  std::vector<std::string> all;
  std::string word;
  for (std::istringstream text(name); std::getline(text, word, '/');) {
    all.push_back(word);
  }
  return all;
}

Difference difference(const data::Image& found, const data::Image& expected) {
  require(
      found.pixels.sizes() == expected.pixels.sizes(), "an image of ", found.pixels.sizes(),
      " beside one of ", expected.pixels.sizes());
  const auto apart = (found.pixels.to(at::kInt) - expected.pixels.to(at::kInt)).abs();
  return {apart.max().item<int>(), apart.to(at::kDouble).mean().item<double>()};
}

}  // namespace theseus::tests
