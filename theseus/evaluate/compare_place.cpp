#include "theseus/evaluate/compare_place.h"

#include <algorithm>
#include <regex>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/output/work_directory.h"
#include "theseus/output/written.h"

namespace theseus::evaluate {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kIdentity = "comparison.json";
constexpr const char* kCells = "cells";
constexpr const char* kTable = "compare.json";
constexpr const char* kHash = "own_hash";  // of a record, in it: of everything else that it says
constexpr int64_t kLongestRecord = 16 << 20;

bool holds_results(const fs::path& directory) {
  const auto cells = output::entries_of(directory / kCells);
  return std::any_of(
      cells.begin(), cells.end(), [](const auto& cell) { return cell.extension() == ".json"; });
}

// Of the settings of a comparison, and nothing of what is none.
std::vector<std::string> names_in(const ordered_json& identity) {
  std::vector<std::string> names;
  if (identity.is_object() && identity.contains("settings") && identity.at("settings").is_array()) {
    for (const auto& setting : identity.at("settings")) {
      if (setting.is_array() && !setting.empty() && setting.front().is_string()) {
        names.push_back(setting.front());
      }
    }
  }
  return names;
}

// Whether `name` is KIND, a setting, a method and a number of batches, as cells and what they are made from are called.
bool is_ours(const std::string& name, const std::string& kind, const std::string& setting) {
  static const std::regex kRest(R"((.+-)?\d+(\.json|\.partial|\.safetensors(\.json)?)?)");
  const auto front = kind + setting + "-";
  return name.starts_with(front) && std::regex_match(name.substr(front.size()), kRest);
}

std::string text_of(const ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// With the hash of the rest, as write_record() leaves it.
ordered_json certified(ordered_json json) {
  json.erase(kHash);
  json[kHash] = hash_of_text(text_of(json));
  return json;
}

// What comparisons of these settings write, and nothing else that may lie there. What others are made of comes first.
std::vector<fs::path> written_in(
    const fs::path& directory, const std::vector<std::string>& settings) {
  std::vector<fs::path> found;
  for (const auto& name : settings) {
    for (const auto& cell : output::entries_of(directory / kCells)) {
      if (is_ours(cell.filename().string(), "", name)) {
        found.push_back(cell);
      }
    }
    for (const auto& file : output::entries_of(directory)) {
      const auto word = file.filename().string();
      // Those of an earlier theseus are called calibration-.
      if (is_ours(word, "examples-", name) || is_ours(word, "calibration-", name) ||
          is_ours(word, "familiar-", name)) {
        found.push_back(file);
      }
    }
  }
  for (const char* name : {kTable, kIdentity}) {
    if (fs::exists(fs::symlink_status(directory / name))) {
      found.push_back(directory / name);
    }
  }
  return found;
}

void clear(const fs::path& directory, const std::vector<std::string>& settings) {
  const auto files = written_in(directory, settings);
  for (const auto& file : files) {
    require(
        is_as_written(file), "--out: ", file.string(),
        " is called as a result would be, and theseus did not write it, or it has changed since; "
        "--fresh replaces only what theseus wrote: move this away, or choose another directory");
  }
  for (const auto& file : files) {
    fs::remove_all(file);
  }
}

}  // namespace

bool is_as_written(const fs::path& path) {
  const auto status = fs::symlink_status(path);
  if (fs::is_directory(status) && path.extension() == ".partial") {
    return output::not_of_work(path).empty();
  }
  if (fs::is_directory(status)) {
    const auto listed = output::find_listed(path);
    return !listed.record.is_null() && output::not_listed(path, listed).empty();
  }
  if (!fs::is_regular_file(status)) {
    return false;
  }
  if (path.extension() == ".safetensors") {
    const auto about = read_record(path.string() + ".json");
    return about.is_object() && about.value("of", "") == hash_of_file(path);
  }
  const auto text = read_text_file(path, kLongestRecord);
  const auto found = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return found.is_object() && text == text_of(certified(found));
}

ordered_json read_record(const fs::path& path) {
  std::error_code ignored;
  auto found = fs::is_regular_file(path, ignored)
                   ? ordered_json::parse(
                         read_text_file(path, kLongestRecord), nullptr, /*allow_exceptions=*/false)
                   : ordered_json();
  if (found.is_object()) {
    found.erase(kHash);
  }
  return found;
}

ordered_json read_whole(const fs::path& path, const std::string& cure) {
  auto found = read_record(path);
  require(
      found.is_object() && read_text_file(path, kLongestRecord) == text_of(certified(found)),
      "the unfinished work is damaged: the content of ", path.string(),
      " is not what its hash says; ", cure);
  return found;
}

void write_record(const fs::path& path, const ordered_json& json) {
  remove_abandoned(path);
  AtomicFile file(path);
  file.append(text_of(certified(json)));
  file.commit();
}

void take_place(const fs::path& directory, const ordered_json& identity, bool fresh) {
  const auto file = directory / kIdentity;
  std::error_code error;
  if (fs::exists(file, error)) {
    const auto found = holds_results(directory) && !fresh
                           ? read_whole(file, "choose another directory, or remove this one")
                           : read_record(file);
    require(
        found == identity || fresh || !holds_results(directory), "--out: ", directory.string(),
        " holds a comparison of something else, or with other options; choose another directory, "
        "or --fresh to replace it");
    if (found != identity || fresh) {
      auto names = names_in(found);
      const auto more = names_in(identity);  // or cells of an unreadable record would be taken
      names.insert(names.end(), more.begin(), more.end());
      clear(directory, names);
    }
  } else {
    require(
        !holds_results(directory), "--out: ", directory.string(),
        " holds results without the record of what they are of; choose another directory");
    require(
        !fresh || output::entries_of(directory).empty(), "--fresh: ", directory.string(),
        " is there and holds no comparison; choose another directory");
  }
  fs::create_directories(directory / kCells, error);
  require(!error, "--out: cannot make ", directory.string(), ": ", error.message());
  write_record(file, identity);
}

}  // namespace theseus::evaluate
