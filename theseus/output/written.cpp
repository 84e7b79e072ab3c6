#include "theseus/output/written.h"

#include <algorithm>
#include <set>

#include <ATen/Parallel.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/file.h"
#include "theseus/output/text_file.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kWritten = "written";
constexpr const char* kRecords[] = {kRecordFile, kAlignmentRecord};
constexpr int64_t kLongestListing = 256 << 20;

// A record cannot hold the hash of its own file: it holds that of everything else in it.
std::string hash_of_record(ordered_json record, const std::string& name) {
  record.at(kWritten).erase(name);
  return hash_of_text(record.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

// In order, links as what they are.
std::vector<fs::directory_entry> entries_below(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(directory, ignored)) {
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::string name_in(const fs::path& directory, const fs::path& path) {
  return path.lexically_relative(directory).generic_string();
}

bool is_plain_file(const fs::directory_entry& entry) {
  std::error_code ignored;
  return fs::is_regular_file(entry.symlink_status(ignored));
}

std::vector<std::string> hashes_of(const std::vector<fs::path>& files) {
  std::vector<std::string> hashes(files.size());
  at::parallel_for(0, std::ssize(files), 1, [&](int64_t begin, int64_t end) {
    for (auto i = begin; i < end; ++i) {
      hashes[static_cast<size_t>(i)] = hash_of_file(files[static_cast<size_t>(i)]);
    }
  });
  return hashes;
}

bool is_as_written(const fs::path& file, const std::string& name, const Listed& listed) {
  const auto& then = listed.record.at(kWritten).at(name);
  return then == (name == listed.name ? hash_of_record(listed.record, name) : hash_of_file(file));
}

}  // namespace

void write_listed(const fs::path& directory, const std::string& name, ordered_json& record) {
  std::vector<fs::path> files;
  for (const auto& entry : entries_below(directory)) {
    if (is_plain_file(entry)) {
      files.push_back(entry.path());
    }
  }
  const auto hashes = hashes_of(files);
  auto& written = record[kWritten] = ordered_json::object();
  for (size_t i = 0; i < files.size(); ++i) {
    written[name_in(directory, files[i])] = hashes[i];
  }
  written[name] = hash_of_record(record, name);
  write_json(directory / name, record);
}

Listed find_listed(const fs::path& directory) {
  for (const char* name : kRecords) {
    std::error_code ignored;
    if (!fs::is_regular_file(fs::symlink_status(directory / name, ignored))) {
      continue;
    }
    auto record = ordered_json::parse(
        read_text_file(directory / name, kLongestListing), nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.contains(kWritten) && record.at(kWritten).is_object() &&
        record.at(kWritten).contains(name)) {
      return {name, std::move(record)};
    }
  }
  return {};
}

std::vector<std::string> not_listed(const fs::path& directory, const Listed& listed) {
  const auto& written = listed.record.at(kWritten);
  std::set<std::string> folders;
  for (const auto& [name, hash] : written.items()) {
    for (auto parent = fs::path(name).parent_path(); !parent.empty();
         parent = parent.parent_path()) {
      folders.insert(parent.generic_string());
    }
  }
  std::vector<std::string> others;
  for (const auto& entry : entries_below(directory)) {
    const auto name = name_in(directory, entry.path());
    std::error_code ignored;
    const bool folder = fs::is_directory(entry.symlink_status(ignored));
    const bool ours = folder ? folders.contains(name)
                             : is_plain_file(entry) && written.contains(name) &&
                                   is_as_written(entry.path(), name, listed);
    if (!ours) {
      others.push_back(name);
    }
  }
  return others;
}

std::vector<std::string> missing(const fs::path& directory, const Listed& listed) {
  std::vector<std::string> names;
  for (const auto& [name, hash] : listed.record.at(kWritten).items()) {
    std::error_code ignored;
    if (!fs::exists(directory / name, ignored)) {
      names.push_back(name);
    }
  }
  return names;
}

// Names of a record that somebody else wrote may lead out of the directory: what is removed is what was found in it.
void remove_listed(const fs::path& directory, const Listed& listed) noexcept {
  auto entries = entries_below(directory);
  std::reverse(entries.begin(), entries.end());  // what lies in a folder before it
  for (const auto& entry : entries) {
    std::error_code ignored;
    if (fs::is_directory(entry.symlink_status(ignored)) ||
        listed.record.at(kWritten).contains(name_in(directory, entry.path()))) {
      fs::remove(entry.path(), ignored);  // of folders the empty ones
    }
  }
  std::error_code ignored;
  fs::remove(directory, ignored);
}

}  // namespace theseus::output
