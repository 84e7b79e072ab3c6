#include "theseus/output/work_contents.h"

#include <algorithm>
#include <regex>
#include <set>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/made_files.h"
#include "theseus/output/text_file.h"
#include "theseus/output/written.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestList = 64 << 20;

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

bool has_lock(const fs::path& directory) {
  const auto lock = directory / kLockFile;
  std::error_code ignored;
  return fs::is_regular_file(lock, ignored) && fs::file_size(lock, ignored) == kLockText.size() &&
         read_text_file(lock, kLockText.size()) == kLockText;
}

bool has_job(const fs::path& directory) {
  try {
    return !read_checked_json(directory / kJobFile).is_null();
  } catch (const InputError&) {
    return false;
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
      R"((\.)?(lock|solved|walk\.saved|losses\.jsonl|made\.txt|(job|memory|route|carried-\d+)\.json|)"
      R"((walk|schedule|gradients|signs|training|best|imitated|carried-\d+|states-\d+-\d+)\.safetensors))"
      R"((\.\d+\.\d+\.tmp)?)");
  static const std::regex kFolders("output|stages|replaced");
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);
  const auto name = path.filename().string();
  return std::regex_match(name, fs::is_directory(status) ? kFolders : kFiles) &&
         (fs::is_directory(status) || fs::is_regular_file(status));
}

std::vector<std::string> not_of_work(const fs::path& directory, bool fresh) {
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
  const bool just_begun = names == std::vector<std::string>{kLockFile} &&
                          fs::is_regular_file(lock, ignored) && fs::file_size(lock, ignored) == 0;
  const bool ours = has_lock(directory) || (fresh && has_job(directory));
  return ours || just_begun ? others : names;
}

std::string damaged_list(const fs::path& directory) {
  if (!has_lock(directory)) {
    return has_job(directory) ? c10::str(
                                    " (", (directory / kLockFile).string(),
                                    " is damaged or gone; --fresh starts anew all the same)")
                              : "";
  }
  const auto list = directory / kMadeFile;
  std::error_code ignored;
  const auto text = fs::is_regular_file(list, ignored) ? read_text_file(list, kLongestList) : "";
  return text.ends_with('\n') ? ""
                              : c10::str(
                                    " (", list.string(),
                                    ", which lists what theseus made in its folders, is damaged or "
                                    "gone)");
}

}  // namespace theseus::output
