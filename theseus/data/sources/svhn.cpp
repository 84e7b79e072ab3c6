// Street View House Numbers, cropped digits: X [32, 32, 3, n] and y [n, 1], where 10 is the digit 0. The file is
// compressed as a whole, so opening reads all of it (train: 225 MB in memory).

#include "theseus/base/error.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/mat_file.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> splits_in(const fs::path& path) {
  std::vector<std::string> splits;
  for (const char* split : {"train", "test"}) {
    if (is_file(path / c10::str(split, "_32x32.mat"))) {
      splits.emplace_back(split);
    }
  }
  return splits;
}

bool recognises(const fs::path& path) {
  return !splits_in(path).empty();
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto there = splits_in(path);
  require(!there.empty(), path.string(), " has no train_32x32.mat or test_32x32.mat");
  Examples examples;
  examples.split = choose_split(there, asked, path);
  const auto file = path / (examples.split + "_32x32.mat");
  const MatFile mat(file);
  const auto images = mat.bytes("X");
  const auto digits = mat.integers("y");
  const auto& shape = images.shape;
  require(
      shape.size() == 4 && shape[0] > 0 && shape[1] > 0 && shape[2] == 3 && shape[3] > 0,
      file.string(), ": expected X of [32, 32, 3, n], the images");
  require(
      shape[3] == std::ssize(digits), file.string(), " has ", shape[3], " images and ",
      digits.size(), " labels");
  const ClassNames classes({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, "SVHN");
  for (int64_t i = 0; i < shape[3]; ++i) {
    const auto name = c10::str(file.string(), ":", i);
    examples.names.push_back(name);
    examples.labels.push_back(classes.checked(digits[i] == 10 ? 0 : digits[i], name));
  }
  examples.classes = classes.names();
  examples.templates = {"a photo of the number: \"{c}\"."};
  const auto plane = shape[0] * shape[1];
  examples.image = images_of_arrays({{
      .values = images.values,
      .count = shape[3],
      .step = 3 * plane,
      .row_step = 1,
      .column_step = shape[0],
      .channel_step = plane,
      .height = shape[0],
      .width = shape[1],
  }});
  return examples;
}

}  // namespace

const Source& svhn() {
  static const Source source = {
      .summary = "Street View House Numbers: {train,test}_32x32.mat",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
