// NWPU-RESISC45: CLASS/CLASS_NNN.jpg, undivided. The splits are the lists that torchgeo and the task-vector
// literature use: resisc45-{train,val,test}.txt, one CLASS_NNN.jpg a line, beside the folder of classes.

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

fs::path find_images(const fs::path& path) {
  const auto inner = find_below(path, {"NWPU-RESISC45", "resisc45/NWPU-RESISC45"});
  if (inner.has_value()) {
    return *inner;
  }
  // The path may be the folder of classes itself.
  return is_folder(path / "airplane") && is_folder(path / "wetland") ? path : fs::path();
}

fs::path find_list(const fs::path& path, const std::string& split) {
  const auto name = "resisc45-" + split + ".txt";
  const auto found = find_below(path, {name, "resisc45/" + name});
  return found.value_or(
      is_file(path.parent_path() / name) ? path.parent_path() / name : fs::path());
}

bool recognises(const fs::path& path) {
  return is_folder(path) && !find_images(path).empty();
}

std::vector<std::string> templates() {
  std::vector<std::string> result;
  for (const std::string article : {"", "a ", "the "}) {
    for (const std::string kind : {"imagery", "photo", "view"}) {
      for (const std::string from : {"satellite ", "aerial "}) {
        result.push_back(from + kind + " of " + article + "{c}.");
      }
    }
  }
  return result;
}

struct Listed {
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
};

Listed listed_images(const fs::path& images, const fs::path& list, const ClassNames& classes) {
  Listed listed;
  for (const auto& line : lines_of(list)) {
    const auto end = line.rfind('_');
    require(
        end != std::string::npos && line.find('/') == std::string::npos, list.string(),
        ": expected CLASS_NNN.jpg, found '", printable(line), "'");
    const auto name = line.substr(0, end);
    listed.files.push_back(images / name / line);
    listed.labels.push_back(classes.named(spaced(name), list.string()));
  }
  require(!listed.files.empty(), list.string(), " is empty");
  return listed;
}

Listed all_images(const fs::path& images) {
  Listed listed;
  int64_t label = 0;
  for (const auto& name : folders_in(images)) {
    const auto found = images_in(images / name);
    require(
        !found.empty(), "the class folder ", (images / printable(name)).string(), " has no images");
    for (const auto& image : found) {
      listed.files.push_back(images / name / image);
      listed.labels.push_back(label);
    }
    ++label;
  }
  return listed;
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto images = find_images(path);
  require(!images.empty(), path.string(), " has no NWPU-RESISC45; looked for NWPU-RESISC45/CLASS");
  std::vector<std::string> there;
  for (const char* split : {"train", "val", "test"}) {
    if (!find_list(path, split).empty()) {
      there.emplace_back(split);
    }
  }
  require(
      !there.empty() || asked.empty(), path.string(), " is not divided: there is no resisc45-",
      printable(asked), ".txt; put the lists there, or leave the split out");
  const auto split = choose_split(there, asked, path);
  auto names = folders_in(images);
  for (auto& name : names) {
    name = spaced(name);
  }
  const ClassNames classes(names, images.string());
  auto listed =
      split.empty() ? all_images(images) : listed_images(images, find_list(path, split), classes);
  auto examples = examples_of_files(listed.files, std::move(listed.labels));
  examples.split = split;
  examples.classes = classes.names();
  examples.templates = templates();
  return examples;
}

}  // namespace

const Source& resisc45() {
  static const Source source = {
      .summary = "RESISC45: NWPU-RESISC45/CLASS/*.jpg with resisc45-{train,val,test}.txt",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
