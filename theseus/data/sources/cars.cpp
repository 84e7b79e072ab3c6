// Stanford Cars in both of its shapes. Devkit: cars_{train,test}/*.jpg, devkit/cars_meta.mat,
// devkit/cars_train_annos.mat and cars_test_annos_withlabels.mat. One file: car_ims/*.jpg with cars_annos.mat,
// whose field `test` divides them. Classes are numbered from 1 there and from 0 here.

#include "theseus/base/error.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/mat_file.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

fs::path find_root(const fs::path& path) {
  for (const auto& root : {path, path / "stanford_cars"}) {
    if (is_file(root / "devkit" / "cars_meta.mat") || is_file(root / "cars_annos.mat")) {
      return root;
    }
  }
  return {};
}

bool recognises(const fs::path& path) {
  return !find_root(path).empty();
}

struct Listed {
  std::vector<std::string> classes;
  std::vector<std::string> files;
  std::vector<int64_t> numbers;
};

Listed from_devkit(const fs::path& root, const std::string& split) {
  Listed listed;
  listed.classes = MatFile(root / "devkit" / "cars_meta.mat").texts("class_names");
  const auto file =
      split == "train"
          ? below(root, "labels of the training images", {"devkit/cars_train_annos.mat"})
          : below(
                root, "labels of the test images",
                {"cars_test_annos_withlabels.mat", "devkit/cars_test_annos_withlabels.mat"});
  const MatFile annotations(file);
  listed.files = annotations.texts("annotations", "fname");
  for (auto& name : listed.files) {
    name.insert(0, "cars_" + split + "/");
  }
  listed.numbers = annotations.integers("annotations", "class");
  return listed;
}

Listed from_one_file(const fs::path& root, const std::string& split) {
  const MatFile annotations(root / "cars_annos.mat");
  const auto files = annotations.texts("annotations", "relative_im_path");
  const auto numbers = annotations.integers("annotations", "class");
  const auto test = annotations.integers("annotations", "test");
  Listed listed;
  listed.classes = annotations.texts("class_names");
  for (size_t i = 0; i < files.size(); ++i) {
    if ((test[i] != 0) == (split == "test")) {
      listed.files.push_back(files[i]);
      listed.numbers.push_back(numbers[i]);
    }
  }
  return listed;
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto root = find_root(path);
  require(
      !root.empty(), path.string(),
      " has no Stanford Cars; looked for [stanford_cars/]devkit/cars_meta.mat and "
      "[stanford_cars/]cars_annos.mat");
  const auto split = choose_split({"train", "test"}, asked, path);
  const bool devkit = is_file(root / "devkit" / "cars_meta.mat");
  auto listed = devkit ? from_devkit(root, split) : from_one_file(root, split);
  const ClassNames classes(listed.classes, root.string());
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
  for (size_t i = 0; i < listed.files.size(); ++i) {
    files.push_back(root / listed.files[i]);
    labels.push_back(classes.checked(listed.numbers[i] - 1, files.back().string()));
  }
  auto examples = examples_of_files(files, std::move(labels));
  examples.split = split;
  examples.classes = std::move(listed.classes);
  examples.templates = {"a photo of a {c}.",        "a photo of the {c}.",
                        "a photo of my {c}.",       "i love my {c}!",
                        "a photo of my dirty {c}.", "a photo of my clean {c}.",
                        "a photo of my new {c}.",   "a photo of my old {c}."};
  return examples;
}

}  // namespace

const Source& cars() {
  static const Source source = {
      .summary = "Stanford Cars: cars_{train,test} with devkit, or car_ims with cars_annos.mat",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
