#include "theseus/data/splits.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/examples.h"
#include "theseus/data/listing.h"

namespace theseus::data {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& split_words() {
  static const std::vector<std::string> words = {"train",      "val", "valid",
                                                 "validation", "dev", "test"};
  return words;
}

// "train" of train.jsonl and of sst2.train.jsonl.
std::string split_of_name(const fs::path& file) {
  const auto stem = file.stem().string();
  const auto dot = stem.rfind('.');
  return split_meant(dot == std::string::npos ? stem : stem.substr(dot + 1));
}

void add(SplitFiles& files, const fs::path& file) {
  if (is_file(file)) {
    const auto [place, added] = files.emplace(split_of_name(file), file);
    require(
        added, file.string(), " and ", place->second.string(), " are both the ", place->first,
        " split; name the file that is meant");
  }
}

}  // namespace

std::string split_meant(std::string_view word) {
  if (word == "train" || word == "test" || word == "val") {
    return std::string(word);
  }
  return word == "valid" || word == "validation" || word == "dev" ? "val" : "";
}

std::string choose_split(
    const std::vector<std::string>& there, const std::string& asked, const fs::path& where) {
  const auto has = [&](const char* word) { return std::ranges::find(there, word) != there.end(); };
  if (asked == kNotTest) {
    return has("train") ? "train" : has("val") ? "val" : there.empty() ? "" : there.front();
  }
  if (asked == kHeldOut) {
    require(
        has("val") || there.size() <= 1, where.string(), " has no val split; there is ",
        joined(there, there.size()), ": say which one is meant");
    return has("val") ? "val" : there.empty() ? "" : there.front();
  }
  if (asked == kValidation) {
    return has("val") ? "val" : choose_split(there, "", where);
  }
  require(
      asked.empty() || asked == "train" || asked == "val" || asked == "test", "unknown split '",
      printable(asked), "'; a split is train, val or test, or a part of one, as in train[0:80]");
  if (asked.empty()) {
    if (there.size() <= 1) {
      return there.empty() ? "" : there.front();
    }
    return has("test") ? "test" : "val";
  }
  require(
      has(asked.c_str()), where.string(), " has no ", asked, " split; ",
      there.empty() || there.front().empty() ? "it is not divided: leave the split out"
                                             : c10::str("there is ", joined(there, there.size())));
  return asked;
}

SplitFiles find_split_files(const fs::path& path, const std::vector<std::string>& endings) {
  SplitFiles files;
  if (is_file(path)) {
    files.emplace(split_of_name(path), path);
    return files;
  }
  const bool folder = is_folder(path);
  for (const auto& ending : endings) {
    for (const auto& word : split_words()) {
      add(files, folder ? path / (word + ending) : fs::path(path.string() + "." + word + ending));
    }
  }
  return files;
}

SplitFiles split_files(const fs::path& path, const std::vector<std::string>& endings) {
  auto files = find_split_files(path, endings);
  std::vector<std::string> looked;
  for (const auto& ending : endings) {
    looked.push_back("{train,val,test}" + ending);
  }
  require(
      !files.empty(), path.string(),
      is_folder(path) ? " has no " : " is not there, nor is it with ",
      joined(looked, looked.size()), " (val: also valid, validation, dev)");
  return files;
}

std::string choose_among(const SplitFiles& files, const std::string& asked, const fs::path& where) {
  std::vector<std::string> there;
  for (const auto& [split, file] : files) {
    there.push_back(split);
  }
  return choose_split(there, asked, where);
}

}  // namespace theseus::data
