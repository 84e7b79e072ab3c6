// Describable Textures: images/CLASS/*.jpg, labels/{train,val,test}1.txt (the first of ten splits, as the
// CLIP papers use) with CLASS/IMAGE a line.

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

fs::path find_root(const fs::path& path) {
  for (const auto& root : {path, path / "dtd"}) {
    if (is_folder(root / "images") && is_folder(root / "labels")) {
      return root;
    }
  }
  return {};
}

std::vector<std::string> splits_in(const fs::path& root) {
  std::vector<std::string> splits;
  for (const std::string split : {"train", "val", "test"}) {
    if (is_file(root / "labels" / (split + "1.txt"))) {
      splits.push_back(split);
    }
  }
  return splits;
}

bool recognises(const fs::path& path) {
  const auto root = find_root(path);
  return !root.empty() && !splits_in(root).empty();
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto root = find_root(path);
  require(!root.empty(), path.string(), " has no DTD; looked for [dtd/]images and [dtd/]labels");
  const auto there = splits_in(root);
  require(!there.empty(), (root / "labels").string(), " has no train1.txt, val1.txt or test1.txt");
  const auto split = choose_split(there, asked, path);
  const auto list = root / "labels" / (split + "1.txt");
  auto names = folders_in(root / "images");
  const ClassNames folders(names, (root / "images").string());
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
  for (const auto& line : lines_of(list)) {
    const auto slash = std::min(line.find('/'), line.size());
    labels.push_back(folders.named(line.substr(0, slash), list.string()));
    files.push_back(root / "images" / line);
  }
  require(!files.empty(), list.string(), " is empty");
  auto examples = examples_of_files(files, std::move(labels));
  examples.split = split;
  for (auto& name : names) {
    examples.classes.push_back(spaced(name));
  }
  for (const std::string article : {"a", "the"}) {
    for (const std::string kind : {"texture", "pattern", "thing", "object"}) {
      examples.templates.push_back("a photo of " + article + " {c} " + kind + ".");
    }
  }
  return examples;
}

}  // namespace

const Source& dtd() {
  static const Source source = {
      .summary = "Describable Textures: images/CLASS/*.jpg, labels/{train,val,test}1.txt",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
