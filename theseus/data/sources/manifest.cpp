// A table of images: path, and optionally label and split.

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/records.h"
#include "theseus/data/splits.h"
#include "theseus/data/stored_images.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

bool has(const std::vector<std::string>& names, const char* name) {
  return std::ranges::find(names, name) != names.end();
}

bool recognises(const fs::path& path) {
  return has(peek_fields(path), "path");
}

struct Table {
  std::vector<std::string> names;
  std::vector<fs::path> files;
  std::vector<std::string> labels;
  std::vector<std::string> splits;
};

std::string needed(const Fields& fields, const char* field, const std::string& name) {
  const auto found = fields.find(field);
  require(
      found != fields.end() && !found->second.empty(), name, ": no ", field,
      "; other rows or the header have it");
  return found->second;
}

Table read(const Records& records) {
  Table table;
  const auto columns = records.field_names();
  require(
      has(columns, "path"), records.path().string(), " has no field 'path'; there is ",
      printable(joined(columns, 20), 400));
  for (int64_t i = 0; i < records.size(); ++i) {
    const auto fields = records.fields(i);
    const auto name = records.name(i);
    table.names.push_back(name);
    table.files.push_back(records.path().parent_path() / needed(fields, "path", name));
    if (has(columns, "label")) {
      table.labels.push_back(needed(fields, "label", name));
    }
    if (has(columns, "split")) {
      const auto word = needed(fields, "split", name);
      table.splits.push_back(split_meant(word));
      require(
          !table.splits.back().empty(), name, ": unknown split '", printable(word),
          "'; a split is train, val or test");
    }
  }
  return table;
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto table = read(Records(path, form_of(path)));
  auto there = table.splits;
  std::ranges::sort(there);
  there.erase(std::unique(there.begin(), there.end()), there.end());
  const auto split = choose_split(there, asked, path);
  auto classes = find_class_names(path.parent_path(), path.stem().string());
  if (!classes.has_value()) {
    classes = classes_among(table.labels, table.names);  // of all splits, so that they agree
  }
  const auto numbers = numbered(table.labels, table.names, classes);
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
  for (size_t i = 0; i < table.files.size(); ++i) {
    if (!table.splits.empty() && table.splits[i] != split) {
      continue;
    }
    require(
        is_file(table.files[i]), table.names[i], ": the image ",
        printable(table.files[i].string(), 400), " is not there; paths are relative to the table");
    files.push_back(table.files[i]);
    if (!numbers.empty()) {
      labels.push_back(numbers[i]);
    }
  }
  auto examples = examples_of_files(files, std::move(labels));
  examples.split = split;
  examples.templates = {"a photo of a {c}."};
  if (classes.has_value()) {
    examples.classes = classes->names();
  }
  return examples;
}

}  // namespace

const Source& manifest() {
  static const Source source = {
      .summary = "a .csv or .jsonl table of images: path, and optionally label and split",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
