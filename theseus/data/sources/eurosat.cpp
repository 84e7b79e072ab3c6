// EuroSAT (RGB): 2750/CLASS/CLASS_N.jpg. The data come undivided. The task-vector literature takes 270
// images of each class for validation and 270 for test, drawn without a fixed seed, and keeps them as
// EuroSAT_splits/{train,val,test}/CLASS: such folders are used when they are there. Otherwise the same
// numbers are drawn with seed 0 from the sorted names, so which images they are is this program's choice.

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/shuffle.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeldOut = 270;

struct Class {
  const char* folder;
  const char* name;
};
constexpr Class kClasses[] = {
    {"AnnualCrop", "annual crop land"},
    {"Forest", "forest"},
    {"HerbaceousVegetation", "brushland or shrubland"},
    {"Highway", "highway or road"},
    {"Industrial", "industrial buildings or commercial buildings"},
    {"Pasture", "pasture land"},
    {"PermanentCrop", "permanent crop land"},
    {"Residential", "residential buildings or homes or apartments"},
    {"River", "river"},
    {"SeaLake", "lake or sea"},
};

// Of the whole, and of what somebody has split.
const std::vector<std::string>& wholes() {
  static const std::vector<std::string> names = {"2750", "EuroSAT_RGB", "EuroSAT/2750", ""};
  return names;
}
const std::vector<std::string>& divided() {
  static const std::vector<std::string> names = {"EuroSAT_splits", ""};
  return names;
}

bool has_classes(const fs::path& folder) {
  return std::ranges::all_of(
      kClasses, [&](const Class& one) { return is_folder(folder / one.folder); });
}

fs::path find_with_classes(
    const fs::path& path, const std::vector<std::string>& names, const std::string& inside) {
  for (const auto& name : names) {
    const auto folder = name.empty() ? path : path / name;
    if (has_classes(inside.empty() ? folder : folder / inside)) {
      return folder;
    }
  }
  return {};
}

// Splits that somebody has made. Where there are some, the whole is not divided again: that could put an
// image into two splits.
std::vector<std::string> splits_in(const fs::path& path) {
  std::vector<std::string> splits;
  for (const char* split : {"train", "val", "test"}) {
    if (!find_with_classes(path, divided(), split).empty()) {
      splits.emplace_back(split);
    }
  }
  return splits;
}

bool recognises(const fs::path& path) {
  return !find_with_classes(path, wholes(), "").empty() || !splits_in(path).empty();
}

std::vector<std::string> part_of(const fs::path& folder, const std::string& split) {
  auto images = images_in(folder);
  require(
      images.size() > 2 * kHeldOut, folder.string(), " has ", images.size(), " images; ", kHeldOut,
      " each are for val and test, and EuroSAT has 2000 or more of every class");
  Random random(0);
  shuffle_front(images, 2 * kHeldOut, random);
  const auto begin = images.begin();
  const auto middle = begin + kHeldOut;
  const auto end = middle + kHeldOut;
  std::vector<std::string> part = split == "val"    ? std::vector(begin, middle)
                                  : split == "test" ? std::vector(middle, end)
                                                    : std::vector(end, images.end());
  std::ranges::sort(part);
  return part;
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto made = splits_in(path);
  const auto whole = find_with_classes(path, wholes(), "");
  require(
      !made.empty() || !whole.empty(), path.string(),
      " has no EuroSAT; looked for {2750,EuroSAT_RGB}/CLASS and "
      "EuroSAT_splits/{train,val,test}/CLASS with all ten of AnnualCrop to SeaLake");
  const auto split = choose_split(
      made.empty() ? std::vector<std::string>{"train", "val", "test"} : made, asked, path);
  const auto parts = find_with_classes(path, divided(), split);
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
  std::vector<std::string> names;
  for (const auto& one : kClasses) {
    const auto folder = parts.empty() ? whole / one.folder : parts / split / one.folder;
    const auto images = parts.empty() ? part_of(folder, split) : images_in(folder);
    require(!images.empty(), "the class folder ", folder.string(), " has no images");
    for (const auto& image : images) {
      files.push_back(folder / image);
      labels.push_back(std::ssize(names));
    }
    names.emplace_back(one.name);
  }
  auto examples = examples_of_files(files, std::move(labels));
  examples.split = split;
  examples.classes = names;
  examples.templates = {
      "a centered satellite photo of {c}.", "a centered satellite photo of a {c}.",
      "a centered satellite photo of the {c}."};
  return examples;
}

}  // namespace

const Source& eurosat() {
  static const Source source = {
      .summary =
          "EuroSAT: {2750,EuroSAT_RGB}/CLASS/*.jpg, or EuroSAT_splits/{train,val,test}/CLASS",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
