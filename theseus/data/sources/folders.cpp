// DIR/CLASS/IMAGE or DIR/{train,val,test}/CLASS/IMAGE.

#include <algorithm>
#include <map>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

// Folder of each split, or of "" when there is no such level. A class may be called "train": only when
// every folder is a split are they splits.
std::map<std::string, fs::path> split_folders(const fs::path& path) {
  std::map<std::string, fs::path> folders;
  for (const auto& name : folders_in(path)) {
    const auto split = split_meant(name);
    if (split.empty()) {
      return {{"", path}};
    }
    const bool added = folders.emplace(split, path / name).second;
    require(added, path.string(), " has two folders for the ", split, " split");
  }
  require(
      !folders.empty(), path.string(),
      " has no class folders; looked for CLASS/IMAGE and {train,val,test}/CLASS/IMAGE");
  return folders;
}

bool holds_images(const fs::path& folder) {
  return std::ranges::any_of(files_in(folder), names_image);
}

bool recognises(const fs::path& path) {
  if (!is_folder(path) || folders_in(path).empty()) {
    return false;
  }
  // The first is enough: open() says what is wrong with others.
  const auto level = path / folders_in(path).front();
  if (split_meant(level.filename().string()).empty()) {
    return holds_images(level);
  }
  const auto classes = folders_in(level);
  return holds_images(classes.empty() ? level : level / classes.front());
}

// Every split numbers its classes as train does, so one that lacks a class still has the right labels.
ClassNames classes_of(const std::map<std::string, fs::path>& splits, const fs::path& chosen) {
  const auto train = splits.find("train");
  const auto& folder = train == splits.end() ? chosen : train->second;
  const auto names = folders_in(folder);
  require(!names.empty(), folder.string(), " has no class folders");
  return {names, folder.string()};
}

// Images that have no class, because they lie where the folders of classes do.
void require_none_beside(const fs::path& folder) {
  const auto images = images_in(folder);
  require(
      images.empty(), folder.string(), " holds images beside its folders, ",
      printable(joined(images, 3), 200),
      ": they have no class; move them into a class folder or away");
}

// Images deeper than a class folder.
void require_none_inside(const fs::path& folder) {
  for (const auto& name : folders_in(folder)) {
    require(
        !holds_images(folder / name), "the class folder ", printable(folder.string(), 400),
        " has a folder ", printable(name),
        " with images, which would be left out; move them up or away");
  }
}

Examples open(const fs::path& path, const std::string& asked) {
  require(is_folder(path), path.string(), " is not a folder of class folders");
  const auto splits = split_folders(path);
  std::vector<std::string> there;
  for (const auto& [split, folder] : splits) {
    there.push_back(split);
  }
  const auto split = choose_split(there, asked, path);
  const auto& folder = splits.at(split);
  const auto classes = classes_of(splits, folder);
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
  require_none_beside(path);
  require_none_beside(folder);
  for (const auto& name : folders_in(folder)) {
    require_none_inside(folder / name);
    const auto label = classes.named(name, (folder / printable(name)).string());
    const auto images = images_in(folder / name);
    require(
        !images.empty(), "the class folder ", (folder / printable(name)).string(),
        " has no JPEG, PNG, PPM or PGM images");
    for (const auto& image : images) {
      files.push_back(folder / name / image);
      labels.push_back(label);
    }
  }
  auto examples = examples_of_files(files, std::move(labels));
  examples.split = split;
  examples.classes = classes.names();
  examples.templates = {"a photo of a {c}."};
  return examples;
}

}  // namespace

const Source& folders() {
  static const Source source = {
      .summary = "images in class folders: DIR/[train,val,test/]CLASS/IMAGE",
      .recognises = recognises,
      .open = open,
      .general = true};
  return source;
}

}  // namespace theseus::data::sources
