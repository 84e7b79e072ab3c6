#include "theseus/evaluate/compare_place.h"

#include <algorithm>
#include <regex>

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

// Whether a cell or an output beside it is as it was written, so that it may go.
bool is_as_measured(const fs::path& cell) {
  if (!fs::is_directory(fs::symlink_status(cell))) {
    const auto found = fs::is_regular_file(fs::symlink_status(cell))
                           ? ordered_json::parse(
                                 read_text_file(cell, 1 << 20), nullptr, /*allow_exceptions=*/false)
                           : ordered_json();
    return found.is_object() && found.contains("metric");
  }
  const auto listed = output::find_listed(cell);
  return cell.extension() == ".partial" ||
         (!listed.record.is_null() && output::not_listed(cell, listed).empty());
}

void require_as_measured(const fs::path& directory, const std::vector<std::string>& settings) {
  for (const auto& name : settings) {
    for (const auto& cell : output::entries_of(directory / kCells)) {
      require(
          !is_ours(cell.filename().string(), "", name) || is_as_measured(cell),
          "--out: ", cell.string(),
          " is called as a result would be, and theseus did not write it so; --fresh replaces only "
          "what theseus wrote: move this away, or choose another directory");
    }
  }
}

// What comparisons of these settings write, and nothing else that may lie there.
void clear(const fs::path& directory, const std::vector<std::string>& settings) {
  for (const auto& name : settings) {
    for (const auto& cell : output::entries_of(directory / kCells)) {
      if (is_ours(cell.filename().string(), "", name)) {
        fs::remove_all(cell);
      }
    }
    for (const auto& file : output::entries_of(directory)) {
      const auto word = file.filename().string();
      if (is_ours(word, "calibration-", name) || is_ours(word, "familiar-", name)) {
        fs::remove(file);
      }
    }
  }
  fs::remove(directory / kIdentity);
  fs::remove(directory / "compare.json");
}

}  // namespace

void write_record(const fs::path& path, const ordered_json& json) {
  remove_abandoned(path);
  AtomicFile file(path);
  file.append(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  file.append("\n");
  file.commit();
}

void take_place(const fs::path& directory, const ordered_json& identity, bool fresh) {
  const auto file = directory / kIdentity;
  std::error_code error;
  if (fs::exists(file, error)) {
    const auto found =
        ordered_json::parse(read_text_file(file, 1 << 20), nullptr, /*allow_exceptions=*/false);
    require(
        found == identity || fresh || !holds_results(directory), "--out: ", directory.string(),
        " holds a comparison of something else, or with other options; choose another directory, "
        "or --fresh to replace it");
    if (found != identity || fresh) {
      auto names = names_in(found);
      const auto more = names_in(identity);  // or cells of an unreadable record would be taken
      names.insert(names.end(), more.begin(), more.end());
      require_as_measured(directory, names);
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
