// An idx file: two zero bytes, 8 (unsigned bytes), the number of axes, the size of each axis as 32-bit
// big-endian number, the values.

#include "theseus/data/idx.h"

#include <algorithm>
#include <optional>

#include "theseus/base/error.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = int64_t{4} << 30;
constexpr int64_t kLargestSide = 1 << 14;

struct Idx {
  Bytes bytes;
  std::vector<int64_t> shape;
  int64_t values = 0;  // where they begin
};

std::vector<std::string> names_of(const std::string& set, const std::string& what, int axes) {
  std::vector<std::string> names;
  for (const char* folder : {"", "raw/", "MNIST/raw/", "FashionMNIST/raw/"}) {
    for (const char* mark : {"-", "."}) {
      for (const char* ending : {"", ".gz"}) {
        names.push_back(c10::str(folder, set, "-", what, mark, "idx", axes, "-ubyte", ending));
      }
    }
  }
  return names;
}

std::string set_of(const std::string& split) {
  return split == "train" ? "train" : "t10k";
}

Idx read(const fs::path& path, size_t axes) {
  Idx idx;
  idx.bytes = open_bytes(path, kMostBytes);
  const auto bytes = idx.bytes.bytes;
  const auto at = [&](size_t i) { return static_cast<int64_t>(bytes[i]); };
  idx.values = static_cast<int64_t>(4 + 4 * axes);
  require(
      std::ssize(bytes) >= idx.values && at(0) == 0 && at(1) == 0 && at(2) == 8 &&
          at(3) == static_cast<int64_t>(axes),
      path.string(), " is not an idx file of bytes with ", axes, " axes");
  int64_t rest = std::ssize(bytes) - idx.values;
  int64_t expected = 1;
  for (size_t i = 0; i < axes; ++i) {
    const auto begin = 4 + 4 * i;
    idx.shape.push_back(at(begin) << 24 | at(begin + 1) << 16 | at(begin + 2) << 8 | at(begin + 3));
    require(
        idx.shape[i] > 0 && (i == 0 || idx.shape[i] <= kLargestSide), path.string(), ": axis ", i,
        " has ", idx.shape[i], " elements");
    expected *= idx.shape[i];
  }
  require(
      rest == expected, path.string(), " has ", rest, " values, and its header says ", expected);
  return idx;
}

std::vector<std::string> splits_in(const fs::path& path) {
  std::vector<std::string> splits;
  for (const char* split : {"train", "test"}) {
    if (find_below(path, names_of(set_of(split), "images", 3)).has_value()) {
      splits.emplace_back(split);
    }
  }
  return splits;
}

}  // namespace

bool recognises_idx(const fs::path& path, const std::vector<std::string>& names) {
  if (!is_folder(path) || splits_in(path).empty()) {
    return false;
  }
  std::error_code error;
  const auto whole = fs::weakly_canonical(path, error);
  return std::ranges::any_of(whole, [&](const fs::path& part) {
    return std::ranges::find(names, lower(part.string())) != names.end();
  });
}

Examples open_idx(
    const fs::path& path,
    const std::string& asked,
    const std::vector<std::string>& class_names,
    const std::vector<std::string>& templates) {
  const auto there = splits_in(path);
  require(
      !there.empty(), path.string(), " has no {train,t10k}-images-idx3-ubyte[.gz], nor in raw/");
  Examples examples;
  examples.split = choose_split(there, asked, path);
  const auto set = set_of(examples.split);
  const auto image_file = below(path, "images", names_of(set, "images", 3));
  const auto label_file = below(path, "labels", names_of(set, "labels", 1));
  const auto images = read(image_file, 3);
  const auto labels = read(label_file, 1);
  require(
      images.shape[0] == labels.shape[0], image_file.string(), " has ", images.shape[0],
      " images, and ", label_file.string(), " has ", labels.shape[0], " labels");
  const auto classes = find_class_names(path, "").value_or(ClassNames(class_names, path.string()));
  for (int64_t i = 0; i < images.shape[0]; ++i) {
    examples.names.push_back(c10::str(image_file.string(), ":", i));
    const auto label = static_cast<int64_t>(labels.bytes.bytes[labels.values + i]);
    examples.labels.push_back(classes.checked(label, c10::str(label_file.string(), ":", i)));
  }
  examples.classes = classes.names();
  examples.templates = templates;
  examples.image = images_of_arrays({{
      .values = images.bytes,
      .count = images.shape[0],
      .first = images.values,
      .step = images.shape[1] * images.shape[2],
      .row_step = images.shape[2],
      .column_step = 1,
      .height = images.shape[1],
      .width = images.shape[2],
  }});
  return examples;
}

}  // namespace theseus::data
