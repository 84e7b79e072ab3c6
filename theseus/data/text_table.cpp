#include "theseus/data/text_table.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/records.h"
#include "theseus/data/splits.h"

namespace theseus::data {
namespace {

namespace fs = std::filesystem;

struct Labels {
  std::vector<std::string> words;  // empty: none has one
  std::vector<std::string> names;
};

std::string label_in(const Fields& fields) {
  const auto one = fields.find("label");
  const auto found = one == fields.end() ? fields.find("labels") : one;
  return found == fields.end() ? "" : std::string(trimmed(found->second));
}

Labels labels_of(const Records& records) {
  Labels labels;
  int64_t without = -1;
  for (int64_t i = 0; i < records.size(); ++i) {
    auto word = label_in(records.fields(i));
    labels.names.push_back(records.name(i));
    if (word.empty()) {
      without = i;
    } else {
      labels.words.push_back(std::move(word));
    }
  }
  require(
      labels.words.empty() || without < 0, without < 0 ? "" : labels.names[without],
      ": no label, and other records have one");
  return labels;
}

// "sst2" of sst2.train.jsonl.
std::string stem_of(const fs::path& file) {
  const auto stem = file.stem().string();
  return stem.substr(0, stem.rfind('.'));
}

std::optional<ClassNames> classes_of(
    const SplitFiles& files, const std::string& split, const Labels& labels) {
  const auto& file = files.at(split);
  auto classes = find_class_names(file.parent_path(), stem_of(file));
  if (classes.has_value() || labels.words.empty()) {
    return classes;
  }
  auto words = labels.words;
  auto names = labels.names;
  if (!find_integer(words[0]).has_value()) {  // a split may lack a class
    for (const auto& [other, path] : files) {
      if (other != split) {
        const auto more = labels_of(Records(path, form_of(path)));
        words.insert(words.end(), more.words.begin(), more.words.end());
        names.insert(names.end(), more.names.begin(), more.names.begin() + std::ssize(more.words));
      }
    }
  }
  return classes_among(words, names);
}

}  // namespace

Examples open_text_table(
    const fs::path& path, const std::string& asked, const std::string& ending) {
  const auto files = split_files(path, {ending});
  Examples examples;
  examples.split = choose_among(files, asked, path);
  const auto& file = files.at(examples.split);
  const auto records = std::make_shared<const Records>(file, form_of(file));
  auto labels = labels_of(*records);
  const auto classes = classes_of(files, examples.split, labels);
  examples.labels = numbered(labels.words, labels.names, classes);
  examples.names = std::move(labels.names);
  if (classes.has_value()) {
    examples.classes = classes->names();
  }
  const auto fields = records->field_names();
  if (std::ranges::find(fields, "text2") != fields.end()) {
    examples.wording.second = "{text2}";
  }
  examples.text = [records](int64_t index) { return records->fields(index); };
  return examples;
}

bool table_has(
    const fs::path& path,
    const std::vector<std::string>& endings,
    const std::vector<std::string>& fields) {
  const auto files = find_split_files(path, endings);
  if (files.empty()) {
    return false;
  }
  const auto& file = files.begin()->second;
  const auto ending = lower(file.extension().string());
  if (std::ranges::find(endings, ending) == endings.end()) {
    return false;
  }
  const auto there = peek_fields(file);
  return std::ranges::all_of(fields, [&](const std::string& field) {
    return std::ranges::find(there, field) != there.end();
  });
}

}  // namespace theseus::data
