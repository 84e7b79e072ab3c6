#include "theseus/data/unrecognised.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <unistd.h>

#include <c10/util/StringUtil.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/examples.h"
#include "theseus/data/listing.h"
#include "theseus/machine/suggest.h"

namespace theseus::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShown = 4;
constexpr const char* kAll = " (docs/data.md shows how each layout lies on disk)";

// What files of an ending are read as.
struct Reading {
  const char* ending;
  const char* words;
};

constexpr Reading kReadings[] = {
    {".jsonl",
     "jsonl:PATH with --wording reads any fields; without a word it needs a field 'text', or "
     "'path' for images"},
    {".tsv",
     "tsv:PATH with --wording reads any columns, rte:PATH and qnli:PATH those of GLUE; without a "
     "word it needs 'text', or 'path' for images"},
    {".csv",
     "a CSV needs a column 'path' (manifest), or 'article' and 'highlights' (cnn_dailymail)"},
    {".txt", "lines:FILE reads one text a line"},
    {".tar", "webdataset wants DIR/{train,val,test}/N.tar"},
    {".mat", "svhn wants {train,test}_32x32.mat, cars a devkit folder"},
    {".bin", "cifar wants data_batch_1.bin to 5 and test_batch.bin, or train.bin and test.bin"},
    {".gz",
     "mnist wants {train,t10k}-{images-idx3,labels-idx1}-ubyte.gz below a folder called mnist"},
    {".parquet", "Parquet is not read: write JSONL or a folder of images"},
    {".arrow", "Arrow is not read: write JSONL or a folder of images"},
    {".json", "JSON is read with one record a line, as .jsonl"},
    {".zip", "archives are not read: unpack them"},
    {".tgz", "archives are not read: unpack them"}};

std::string hints_for(const std::set<std::string>& endings) {
  std::string text;
  for (const auto& [ending, words] : kReadings) {
    text += endings.contains(ending) ? c10::str("; ", words) : "";
  }
  return text;
}

std::set<std::string> endings_of(const std::vector<std::string>& files) {
  std::set<std::string> endings;
  for (const auto& file : files) {
    endings.insert(lower(fs::path(file).extension().string()));
  }
  return endings;
}

std::string shown(std::vector<std::string> names) {
  std::transform(names.begin(), names.end(), names.begin(), [](const std::string& name) {
    return printable(name, 40);
  });
  return joined(names, kShown);
}

std::string of_folder(const fs::path& path) {
  const auto folders = folders_in(path), files = files_in(path);
  if (folders.empty() && files.empty()) {
    return "the folder is empty";
  }
  const auto images = std::count_if(
      files.begin(), files.end(), [](const std::string& name) { return names_image(name); });
  auto text = "it holds " + shown(folders.empty() ? files : folders);
  text += folders.empty() || files.empty() ? "" : " and " + shown(files);
  if (images > 0) {
    text +=
        "; images that lie side by side need a folder for each class, or a manifest that lists "
        "them";
  } else if (!folders.empty()) {
    text += "; folders of classes need images in each of them, JPEG, PNG, PPM or PGM";
  }
  return text + hints_for(endings_of(files));
}

// Of a NAME that is none.
std::string of_name(const std::string& name) {
  std::string all;
  for (const auto& row : all_sources()) {
    all.append(" ").append(row.name);
  }
  const auto near = machine::did_you_mean(lower(name), all);
  return c10::str(
      "'", printable(name, 40), "' is no layout", near.empty() ? "; there are:" + all : near);
}

}  // namespace

bool is_missing(const fs::path& path) {
  std::error_code error;
  if (fs::status(path, error).type() != fs::file_type::not_found) {
    return false;
  }
  const auto parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const auto start = path.filename().string() + ".";
  for (auto entry = fs::directory_iterator(parent, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with(start)) {
      return false;
    }
  }
  return true;
}

std::string why_unreadable(const fs::path& path) {
  const bool folder = is_folder(path);
  return ::access(path.c_str(), folder ? R_OK | X_OK : R_OK) != 0 && errno == EACCES
             ? "permission denied"
             : "";
}

std::string why_unrecognised(const std::string& words) {
  const auto start = printable(words, 400) + ": ";
  if (is_folder(words)) {
    return c10::str(
        start, "no layout of data takes this folder: ", of_folder(words),
        ". Name the layout, as in NAME:PATH", kAll);
  }
  if (std::error_code ignored; is_file(words) && fs::file_size(words, ignored) == 0) {
    return start + "the file is empty";
  }
  if (is_file(words)) {
    const auto hints = hints_for(endings_of({words}));
    return c10::str(
        start, "no layout of data takes this file",
        hints.empty() ? "; data are folders of images, or .jsonl, .tsv, .csv and .txt files"
                      : hints,
        ". Name the layout, as in NAME:PATH", kAll);
  }
  const auto colon = words.find(':');
  const bool named =
      colon != std::string::npos && colon > 0 && words.find('/') > colon && words.find('.') > colon;
  return c10::str(
      start, "no such file or folder",
      named ? ", and " + of_name(words.substr(0, colon)) + kAll : ", and no NAME:PATH");
}

}  // namespace theseus::data
