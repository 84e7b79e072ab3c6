#include "theseus/data/pair_task.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/labels.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"

namespace theseus::data {
namespace {

namespace fs = std::filesystem;

struct FoundFile {
  const PairFile* file = nullptr;
  fs::path path;
};

std::map<std::string, FoundFile> find_files(const PairTask& task, const fs::path& path) {
  std::map<std::string, FoundFile> found;
  for (const auto& file : task.files) {
    for (const auto& folder : task.folders) {
      const auto whole = (folder.empty() ? path : path / folder) / file.name;
      if (!found.contains(file.split) && is_file(whole)) {
        found[file.split] = {&file, whole};
      }
    }
  }
  return found;
}

// What the file calls each of our fields.
std::map<std::string, std::string> columns_of(const PairTask& task, const Records& records) {
  const auto there = records.field_names();
  std::map<std::string, std::string> columns;
  for (const auto& [ours, theirs] : task.fields) {
    for (const auto& name : theirs) {
      if (!columns.contains(ours) && std::ranges::find(there, name) != there.end()) {
        columns[ours] = name;
      }
    }
    require(
        columns.contains(ours), records.path().string(), " has no ", ours, "; looked for ",
        joined(theirs, theirs.size()), ", there is ", printable(joined(there, 20), 400));
  }
  return columns;
}

std::string label_in(const PairTask& task, const Fields& fields) {
  for (const auto& name : task.labels) {
    const auto found = fields.find(name);
    if (found != fields.end()) {
      const std::string word(trimmed(found->second));
      const auto other = task.synonyms.find(word);
      return other == task.synonyms.end() ? word : other->second;
    }
  }
  return "";
}

// Records that count, with their labels.
std::vector<int64_t> take_labels(const PairTask& task, const Records& records, Examples& examples) {
  const ClassNames classes(task.classes, task.title);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < records.size(); ++i) {
    const auto name = records.name(i);
    const auto word = label_in(task, records.fields(i));
    if (word == "-" || word == "-1") {
      continue;
    }
    if (!word.empty()) {
      examples.labels.push_back(classes.label(word, name));
    }
    kept.push_back(i);
    examples.names.push_back(name);
    require(
        examples.labels.empty() || examples.labels.size() == kept.size(), name,
        ": some records have a label and this one or those before it have none; looked for ",
        joined(task.labels, task.labels.size()));
  }
  require(!kept.empty(), records.path().string(), " has no records with a label");
  return kept;
}

std::string choose(
    const PairTask& task,
    const std::map<std::string, FoundFile>& found,
    const std::string& asked,
    const fs::path& path) {
  std::vector<std::string> there;
  for (const auto& [split, file] : found) {
    there.push_back(split);
  }
  const bool hidden = asked.empty() && task.test_is_unlabelled && found.contains("val");
  return choose_split(there, hidden ? "val" : asked, path);
}

}  // namespace

bool recognises_pair_task(const PairTask& task, const fs::path& path) {
  return is_folder(path) && !find_files(task, path).empty();
}

Examples open_pair_task(const PairTask& task, const fs::path& path, const std::string& asked) {
  const auto found = find_files(task, path);
  std::vector<std::string> looked;
  for (const auto& file : task.files) {
    looked.push_back(file.name);
  }
  require(
      !found.empty(), path.string(), " has no files of ", task.title, "; looked for ",
      joined(looked, looked.size()));
  Examples examples;
  examples.split = choose(task, found, asked, path);
  const auto& file = found.at(examples.split);
  const auto records =
      std::make_shared<const Records>(file.path, file.file->form, file.file->columns);
  const auto columns = columns_of(task, *records);
  auto kept = take_labels(task, *records, examples);
  examples.classes = task.classes;
  examples.wording = {
      "{" + task.fields[0].first + "}", "{" + task.fields[1].first + "}", /*answer=*/""};
  examples.prompted = {task.prompt, "", "{class}"};
  examples.text = [records, columns, kept = std::move(kept)](int64_t index) {
    auto all = records->fields(kept.at(index));
    Fields fields;
    for (const auto& [ours, theirs] : columns) {
      const auto value = all.find(theirs);
      require(value != all.end(), records->name(kept[index]), ": no ", theirs);
      fields[ours] = std::move(value->second);
    }
    return fields;
  };
  return examples;
}

Source source_of(
    const PairTask& task,
    std::string_view summary,
    bool (*recognises)(const PairTask& task, const fs::path& path)) {
  Source source = {.summary = summary, .recognises = nullptr};
  if (recognises != nullptr) {
    source.recognises = [task, recognises](const fs::path& path) { return recognises(task, path); };
  }
  source.open = [task](const fs::path& path, const std::string& split) {
    return open_pair_task(task, path, split);
  };
  return source;
}

}  // namespace theseus::data
