#include "theseus/evaluate/compare_place.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/output/work_directory.h"

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

// What comparisons write, and nothing else that may lie there.
void clear(const fs::path& directory) {
  fs::remove_all(directory / kCells);
  for (const auto& path : output::entries_of(directory)) {
    const auto name = path.filename().string();
    const bool prepared = name.starts_with("calibration-") || name.starts_with("familiar-");
    if (prepared || name == kIdentity || name == "compare.json") {
      fs::remove(path);
    }
  }
}

}  // namespace

void write_record(const fs::path& path, const ordered_json& json) {
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
      clear(directory);
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
