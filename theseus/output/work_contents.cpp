#include "theseus/output/work_contents.h"

#include <algorithm>
#include <regex>
#include <set>

#include "theseus/base/file.h"
#include "theseus/base/made_files.h"
#include "theseus/output/written.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

// The names on the list, and the folders that they lie in. An alignment's stages are moved to the output.
std::set<std::string> names_made_in(const fs::path& directory) {
  std::set<std::string> names;
  for (const auto& name : MadeFiles::read(directory / kMadeFile)) {
    for (fs::path path = name; path.has_parent_path(); path = path.parent_path()) {
      names.insert(path.generic_string());
    }
  }
  return names;
}

// `.NAME.PID.NUMBER.tmp` is a file on the way to its name.
std::string final_name(const std::string& name) {
  static const std::regex kOnTheWay(R"((.*/)?\.([^/]+)\.\d+\.\d+\.tmp)");
  return std::regex_replace(name, kOnTheWay, "$1$2");
}

// What lies in a folder of unfinished work and is no job's. An output that was replaced may lie there, too.
void add_strangers_below(
    const fs::path& folder, const std::set<std::string>& made, std::vector<std::string>& others) {
  const auto listed = find_listed(folder);
  const auto& record = listed.record;
  const auto changed = record.is_null() ? std::vector<std::string>() : not_listed(folder, listed);
  const std::set<std::string> unlisted(changed.begin(), changed.end());
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    const auto name = entry.path().lexically_relative(folder).generic_string();
    const auto from_work = (folder.filename() / name).generic_string();
    const auto status = entry.symlink_status(ignored);
    const bool plain = fs::is_directory(status) || fs::is_regular_file(status);
    const bool was_listed = !record.is_null() && !unlisted.contains(name);
    if (!was_listed && !(plain && made.contains(final_name(from_work)))) {
      others.push_back(from_work);
    }
  }
}

}  // namespace

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_of_work(const fs::path& path) {
  static const std::regex kFiles(
      R"((\.)?(lock|solved|losses\.jsonl|made\.txt|(job|memory|route|carried-\d+)\.json|)"
      R"((walk|schedule|gradients|signs|training|best|imitated|carried-\d+|states-\d+-\d+)\.safetensors))"
      R"((\.\d+\.\d+\.tmp)?)");
  static const std::regex kFolders("output|stages|replaced");
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);
  const auto name = path.filename().string();
  return std::regex_match(name, fs::is_directory(status) ? kFolders : kFiles) &&
         (fs::is_directory(status) || fs::is_regular_file(status));
}

std::vector<std::string> not_of_work(const fs::path& directory) {
  std::vector<std::string> names, others;
  std::error_code ignored;
  const auto made = names_made_in(directory);
  for (const auto& entry : entries_of(directory)) {
    names.push_back(entry.filename().string());
    if (!is_of_work(entry)) {
      others.push_back(names.back());
    } else if (fs::is_directory(entry, ignored)) {
      add_strangers_below(entry, made, others);
    }
  }
  const auto lock = directory / kLockFile;
  const auto size = fs::is_regular_file(lock, ignored) ? fs::file_size(lock, ignored) : 0;
  const bool ours = size == kLockText.size() && read_text_file(lock, kLockText.size()) == kLockText;
  const bool just_begun = size == 0 && names == std::vector<std::string>{kLockFile};
  return ours || just_begun ? others : names;
}

}  // namespace theseus::output
