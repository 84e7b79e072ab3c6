// CIFAR-10 and CIFAR-100 as binary batches: records of the label (in CIFAR-100 the coarse one and then the
// fine one, which is taken) and the red, green and blue of 32 x 32 pixels.

#include "theseus/base/error.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32;
constexpr int64_t kValues = 3 * kSide * kSide;

struct Kind {
  std::string folder;
  std::string class_file;
  std::vector<std::string> train;
  std::string test;
  int64_t labels;  // bytes of them before the pixels
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> both = {
      {"cifar-10-batches-bin",
       "batches.meta.txt",
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin"},
       "test_batch.bin",
       1},
      {"cifar-100-binary", "fine_label_names.txt", {"train.bin"}, "test.bin", 2}};
  return both;
}

const Kind* find_kind(const fs::path& path, fs::path& folder) {
  for (const auto& kind : kinds()) {
    for (const auto& candidate : {path, path / kind.folder}) {
      if (is_file(candidate / kind.class_file) &&
          (is_file(candidate / kind.test) || is_file(candidate / kind.train[0]))) {
        folder = candidate;
        return &kind;
      }
    }
  }
  return nullptr;
}

bool recognises(const fs::path& path) {
  fs::path folder;
  return find_kind(path, folder) != nullptr;
}

std::vector<std::string> templates() {
  std::vector<std::string> result;
  for (const std::string article : {"a", "the"}) {
    for (const std::string kind :
         {"", "blurry ", "black and white ", "low contrast ", "high contrast ", "bad ", "good "}) {
      result.push_back("a " + kind + "photo of " + article + " {c}.");
    }
    result.push_back("a photo of " + article + " small {c}.");
    result.push_back("a photo of " + article + " big {c}.");
  }
  return result;
}

void add_batch(
    const fs::path& file,
    const Kind& kind,
    const ClassNames& classes,
    Examples& examples,
    std::vector<PixelArray>& arrays) {
  const auto step = kind.labels + kValues;
  const auto values = open_bytes(file, int64_t{4} << 30);
  const auto size = std::ssize(values.bytes);
  require(
      size > 0 && size % step == 0, file.string(), " has ", size,
      " bytes, which is no multiple of ", step, ", the size of a record");
  for (int64_t i = 0; i < size / step; ++i) {
    const auto name = c10::str(file.string(), ":", i);
    const auto label = static_cast<int64_t>(values.bytes[i * step + kind.labels - 1]);
    examples.names.push_back(name);
    examples.labels.push_back(classes.checked(label, name));
  }
  arrays.push_back({
      .values = values,
      .count = size / step,
      .first = kind.labels,
      .step = step,
      .row_step = kSide,
      .column_step = 1,
      .channel_step = kSide * kSide,
      .height = kSide,
      .width = kSide,
  });
}

Examples open(const fs::path& path, const std::string& asked) {
  fs::path folder;
  const auto* kind = find_kind(path, folder);
  require(
      kind != nullptr, path.string(),
      " has no binary batches of CIFAR; looked for batches.meta.txt with "
      "{data_batch_1,test_batch}.bin "
      "and fine_label_names.txt with {train,test}.bin, also in cifar-10-batches-bin and "
      "cifar-100-binary");
  std::vector<std::string> there;
  if (is_file(folder / kind->train[0])) {
    there.emplace_back("train");
  }
  if (is_file(folder / kind->test)) {
    there.emplace_back("test");
  }
  Examples examples;
  examples.split = choose_split(there, asked, path);
  const auto class_file = folder / kind->class_file;
  auto names = lines_of(class_file);
  for (auto& name : names) {
    name = spaced(name);
  }
  const ClassNames classes(names, class_file.string());
  std::vector<PixelArray> arrays;
  for (const auto& name :
       examples.split == "train" ? kind->train : std::vector<std::string>{kind->test}) {
    add_batch(folder / name, *kind, classes, examples, arrays);
  }
  examples.classes = classes.names();
  examples.templates = templates();
  examples.image = images_of_arrays(std::move(arrays));
  return examples;
}

}  // namespace

const Source& cifar() {
  static const Source source = {
      .summary = "CIFAR-10 or CIFAR-100 binary batches: cifar-10-batches-bin, cifar-100-binary",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
