#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "theseus/data/examples.h"
#include "theseus/data/records.h"

namespace theseus::data {

// One way in which a split of a task lies in its folder.
struct PairFile {
  std::string split;
  std::string name;
  RecordForm form = RecordForm::kJsonLines;
  std::vector<std::string> columns = {};  // of a table without header line
};

// A task on pairs of sentences, as it is distributed.
struct PairTask {
  std::string title;
  std::vector<std::string> folders;  // below the path, in which the files are looked for
  std::vector<PairFile> files;       // the first of a split that is there is read
  // Fields of ours, and what files call them.
  std::vector<std::pair<std::string, std::vector<std::string>>> fields;
  std::vector<std::string> labels;  // fields with the label, the first that is there
  std::vector<std::string> classes;
  std::map<std::string, std::string> synonyms = {};  // words of files for classes
  bool test_is_unlabelled = false;                   // then "" is val
  std::string prompt;                                // for models that write their answer
};

// Examples whose label is "-" or "-1" (no agreement among those who gave it) are left out.
Examples open_pair_task(
    const PairTask& task, const std::filesystem::path& path, const std::string& split);

// Whether a file of the task is there.
bool recognises_pair_task(const PairTask& task, const std::filesystem::path& path);

// `recognises` takes the task and a path; null when the layout has to be named, because files of others are called the same.
Source source_of(
    const PairTask& task,
    std::string_view summary,
    bool (*recognises)(const PairTask& task, const std::filesystem::path& path) =
        recognises_pair_task);

}  // namespace theseus::data
