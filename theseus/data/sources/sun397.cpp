// SUN397: SUN397/a/abbey/*.jpg with ClassName.txt (/a/abbey a line) and the lists of the first of ten
// partitions, Training_01.txt and Testing_01.txt (/a/abbey/IMAGE.jpg a line).

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> places_of(const std::string& name) {
  return {name, "SUN397/" + name, "Partitions/" + name};
}

bool recognises(const fs::path& path) {
  return is_folder(path) && find_below(path, places_of("ClassName.txt")).has_value() &&
         (find_below(path, places_of("Training_01.txt")).has_value() ||
          find_below(path, places_of("Testing_01.txt")).has_value());
}

// "apartment building outdoor" of "/a/apartment_building/outdoor".
std::string class_name(const std::string& line, const fs::path& file) {
  require(
      line.size() > 3 && line[0] == '/' && line[2] == '/', file.string(),
      ": expected /a/NAME, found '", printable(line), "'");
  auto name = spaced(line.substr(3));
  for (char& character : name) {
    character = character == '/' ? ' ' : character;
  }
  return name;
}

Examples open(const fs::path& path, const std::string& asked) {
  require(is_folder(path), path.string(), " is not a folder");
  const auto class_file = below(path, "list of classes", places_of("ClassName.txt"));
  const auto folders = lines_of(class_file);
  const ClassNames by_folder(folders, class_file.string());
  std::vector<std::string> there;
  for (const auto& [split, name] :
       {std::pair("train", "Training_01.txt"), std::pair("test", "Testing_01.txt")}) {
    if (find_below(path, places_of(name)).has_value()) {
      there.emplace_back(split);
    }
  }
  require(!there.empty(), path.string(), " has no Training_01.txt or Testing_01.txt");
  const auto split = choose_split(there, asked, path);
  const auto list = below(
      path, "list of images", places_of(split == "train" ? "Training_01.txt" : "Testing_01.txt"));
  const auto root = is_folder(path / "SUN397") ? path / "SUN397" : path;
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
  for (const auto& line : lines_of(list)) {
    labels.push_back(by_folder.named(line.substr(0, line.rfind('/')), list.string()));
    files.push_back(root / line.substr(1));
  }
  require(!files.empty(), list.string(), " is empty");
  auto examples = examples_of_files(files, std::move(labels));
  examples.split = split;
  for (const auto& folder : folders) {
    examples.classes.push_back(class_name(folder, class_file));
  }
  examples.classes = ClassNames(examples.classes, class_file.string()).names();
  examples.templates = {"a photo of a {c}.", "a photo of the {c}."};
  return examples;
}

}  // namespace

const Source& sun397() {
  static const Source source = {
      .summary = "SUN397: SUN397/a/abbey/*.jpg, ClassName.txt, {Training,Testing}_01.txt",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
