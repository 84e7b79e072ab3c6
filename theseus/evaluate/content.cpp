#include "theseus/evaluate/content.h"

#include <set>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/data/sampling.h"
#include "theseus/output/opened.h"
#include "theseus/output/side_files.h"
#include "theseus/stats/prepare.h"

namespace theseus::evaluate {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The file that an example is in: its name may go on behind that, as in FILE:NUMBER. Empty where there is none.
fs::path file_of(const std::string& name) {
  std::error_code ignored;
  for (auto end = name.size(); end != std::string::npos && end > 0;
       end = name.find_last_of(":/", end - 1)) {
    if (fs::is_regular_file(name.substr(0, end), ignored)) {
      return name.substr(0, end);
    }
  }
  return {};
}

// Of images the files that they are in, each once.
std::vector<fs::path> files_of(const data::Examples& examples, const std::vector<int64_t>& places) {
  std::set<fs::path> files;
  for (const auto place : places) {
    files.insert(file_of(examples.names[static_cast<size_t>(place)]));
  }
  files.erase(fs::path());
  return {files.begin(), files.end()};
}

std::vector<fs::path> files_below(const fs::path& path) {
  std::error_code ignored;
  std::vector<fs::path> files;
  if (!fs::is_directory(path, ignored)) {
    return fs::exists(path, ignored) ? std::vector{path} : files;
  }
  for (const auto& entry : fs::recursive_directory_iterator(
           path, fs::directory_options::skip_permission_denied, ignored)) {
    if (entry.is_regular_file(ignored)) {
      files.push_back(entry.path());
    }
  }
  return files;
}

}  // namespace

std::string hash_of_examples(const data::Examples& examples, const std::vector<int64_t>& places) {
  ContentHash hash;
  hash.add(data::hash_of(examples, places));
  for (const auto* words : {&examples.classes, &examples.templates}) {
    for (const auto& word : *words) {
      hash.add(c10::str(word.size(), " ", word));
    }
  }
  if (examples.text) {
    for (const auto place : places) {  // fields, since the wording is an option
      for (const auto& [name, value] : examples.text(place)) {
        hash.add(c10::str(name.size(), " ", value.size(), " ", name, value));
      }
    }
    return hash.text();
  }
  const auto files = files_of(examples, places);
  const auto root = files.empty() ? fs::path() : files.front().parent_path();
  hash.add(output::hash_of_files(root, files));  // data that were moved as a whole are the same
  return hash.text();
}

ordered_json content_of(const std::string& words, const std::vector<std::string>& splits) {
  if (words.empty()) {
    return nullptr;
  }
  std::error_code ignored;
  const auto colon = words.find(':');
  const bool named = !fs::exists(words, ignored) && colon != std::string::npos;
  const fs::path path = named ? words.substr(colon + 1) : words;
  ordered_json content = {named ? words.substr(0, colon) : ""};
  if (splits.empty() || stats::is_prepared(words)) {
    content.push_back(output::hash_of_files(path, files_below(path)));
    return content;
  }
  for (const auto& split : splits) {
    const auto examples = data::open_examples(words, split);
    content.push_back(hash_of_examples(examples, data::every(examples)));
  }
  return content;
}

ordered_json content_of(const model::Model& model) {
  return {
      checkpoint::fingerprint(model.checkpoint()), hash_of_file(model.location().config),
      output::hash_of_side_files(output::directory_of(model.location()))};
}

}  // namespace theseus::evaluate
