#include "theseus/transport/alignment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/checkpoint/write.h"

namespace theseus::transport {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
// With maps as factors, SPACE/left and SPACE/right instead of SPACE, which a reader of format 1 cannot use.
constexpr int kFormatOfFactors = 2;
constexpr const char* kLeft = "/left";
constexpr const char* kRight = "/right";

// A row of `spaces` whose map is kept as factors says so: how many columns, and what they are added to.
bool is_factored(const nlohmann::json& row) {
  return row.contains("factors");
}

fs::path maps_file(const fs::path& directory, int64_t stage) {
  return directory / c10::str("maps-", stage, ".safetensors");
}

// An earlier theseus had other words.
void use_our_words(nlohmann::json& about) {
  if (about.contains("calibration")) {
    about["examples"] = about.at("calibration");
    about.erase("calibration");
  }
  auto method = about.at("method").get<std::string>();
  if (about.value("stream", false)) {
    method = method == "procrustes" ? "stream" : method + ":stream";
    about.erase("stream");
  }
  about["method"] = method == "identity" ? "copy" : method;
}

// Everything that is read of it later, so that a damaged file shows here.
void check(const nlohmann::json& about) {
  for (const char* side : {"source", "target"}) {
    about.at(side).at("path").get<std::string>();
    about.at(side).at("fingerprint").get<std::string>();
  }
  about.at("method").get<std::string>();
  about.at("files").get<std::map<std::string, std::string>>();
  about.at("towers").get<std::vector<std::string>>();
  for (const auto& row : about.at("spaces")) {
    row.at("space").get<std::string>();
    row.at("route").get<std::string>();
    for (const char* number : {"stage", "source_width", "target_width", "rank", "completed"}) {
      row.at(number).get<int64_t>();
    }
    if (is_factored(row)) {
      row.at("factors").get<int64_t>();
      row.at("added_to").get<std::string>();
    }
  }
}

}  // namespace

nlohmann::ordered_json describe(int64_t stage, const MapSet& maps, const stats::Moments& moments) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& [space, map] : maps) {
    nlohmann::ordered_json row = {
        {"stage", stage},
        {"space", space},
        {"source_width", map.source_width()},
        {"target_width", map.target_width()}};
    if (map.factors.defined()) {
      row["factors"] = map.factors.count();
      row["added_to"] = map.factors.identity ? "identity" : "zero";
    }
    if (const auto found = moments.find(space); found != moments.end()) {
      row["rows"] = found->second.rows;
    }
    if (map.by_gradients) {
      row["statistics"] = "gradients";
    }
    row["route"] = map.route;
    row["rank"] = map.rank;
    row["completed"] = map.completed;
    if (map.isometry) {
      row["orthogonality"] = map.orthogonality;
      row["asymmetry"] = map.asymmetry;
    }
    if (std::isfinite(map.condition)) {
      row["condition"] = map.condition;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::ordered_json describe(const stats::Route& route) {
  nlohmann::ordered_json source = nlohmann::ordered_json::array();
  for (const auto& block : route.source) {
    source.push_back({{"run_as", block.run_as}, {"parts", block.parts}});
  }
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (const auto& pair : route.pairs) {
    pairs.push_back({{"source", pair.source}, {"target", pair.target}, {"share", pair.share}});
  }
  return {{"source_blocks", source}, {"pairs", pairs}};
}

stats::Route read_route(const nlohmann::json& json) {
  stats::Route route;
  for (const auto& block : json.at("source_blocks")) {
    route.source.push_back({block.at("run_as"), block.at("parts")});
  }
  for (const auto& pair : json.at("pairs")) {
    route.pairs.push_back({pair.at("source"), pair.at("target"), pair.at("share")});
  }
  return route;
}

Alignment Alignment::open(const fs::path& directory) {
  return with_context("reading the alignment " + directory.string(), [&] {
    std::error_code ignored;
    require(
        fs::is_directory(directory, ignored),
        "there is no such directory: 'theseus align' writes one");
    require(
        fs::is_regular_file(directory / kAlignmentFile, ignored), "there is no ", kAlignmentFile,
        " in it: 'theseus align' writes one");
    Alignment result;
    result.directory_ = directory;
    result.about_ = Json::parse_file(directory / kAlignmentFile).raw();
    try {
      const auto format = result.about_.value("format", 0);
      require(
          format == kFormat || format == kFormatOfFactors, "it has format ", format,
          "; this theseus reads formats ", kFormat, " and ", kFormatOfFactors,
          ": read it with the theseus that wrote it, or make it anew");
      use_our_words(result.about_);
      result.route_ = read_route(result.about_.at("depth"));
      check(result.about_);
    } catch (const nlohmann::json::exception& error) {
      throw InputError(c10::str(kAlignmentFile, " is damaged: ", error.what()));
    }
    return result;
  });
}

MapSet Alignment::maps(int64_t stage) const {
  MapSet maps;
  const auto path = maps_file(directory_, stage);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return maps;
  }
  const auto file = checkpoint::Checkpoint::open(path);
  std::set<std::string> plain;  // beside factors
  for (const auto& info : file.tensors()) {
    plain.insert(info.name);
  }
  for (const auto& row : about_.at("spaces")) {
    const auto space = row.at("space").get<std::string>();
    if (row.at("stage") == stage && is_factored(row)) {
      maps[space] = {
          .factors = {
              row.at("added_to") == "identity", file.tensor(space + kLeft),
              file.tensor(space + kRight)}};
      plain.erase(space + kLeft);
      plain.erase(space + kRight);
    }
  }
  for (const auto& name : plain) {
    maps[name] = {.matrix = file.tensor(name)};
  }
  return maps;
}

void Alignment::require_maps(const SpaceSet& needed) const {
  std::set<std::string> read;
  for (const auto& space : needed) {
    bool known = false;
    for (const auto& row : about_.at("spaces")) {
      if (row.at("space") != space) {
        continue;
      }
      known = true;
      const auto path = maps_file(directory_, row.at("stage").get<int64_t>());
      const auto file = checkpoint::Checkpoint::open(path);
      const auto expect = [&](const std::string& tensor, const char* rows, const char* columns) {
        const auto* info = file.find(tensor);
        const std::vector<int64_t> shape = {row.at(rows), row.at(columns)};
        require(
            info != nullptr && info->shape == shape && info->dtype == "F32", path.string(),
            " is damaged: expected ", tensor, " F32 ", at::IntArrayRef(shape),
            "; make the alignment anew");
      };
      if (is_factored(row)) {
        expect(space + kLeft, "source_width", "factors");
        expect(space + kRight, "target_width", "factors");
      } else {
        expect(space, "source_width", "target_width");
      }
      const auto name = path.filename().string();
      require(
          !read.insert(name).second ||
              about_.at("files").value(name, "") == checkpoint::fingerprint(file),
          path.string(), " is not the file that the alignment was written with; make it anew");
    }
    require(
        known, "the alignment ", directory_.string(), " has no map of ", space,
        ", which this update needs");
  }
}

at::Tensor Alignment::find_map(const std::string& space) const {
  int64_t stage = -1;
  for (const auto& row : about_.at("spaces")) {
    stage = row.at("space") == space ? std::max(stage, row.at("stage").get<int64_t>()) : stage;
  }
  if (stage < 0) {
    return {};
  }
  require_maps({space});
  return maps(stage).at(space).dense();
}

std::vector<fs::path> Alignment::write_stage(
    const fs::path& directory, int64_t stage, const MapSet& maps, const stats::Moments& moments) {
  std::vector<std::pair<std::string, at::Tensor>> matrices, sums;
  for (const auto& [space, map] : maps) {
    if (map.factors.defined()) {
      matrices.emplace_back(space + kLeft, map.factors.left.to(at::kCPU).contiguous());
      matrices.emplace_back(space + kRight, map.factors.right.to(at::kCPU).contiguous());
    } else {
      matrices.emplace_back(space, map.matrix.to(at::kCPU).contiguous());
    }
  }
  for (const auto& [space, pair] : moments) {
    for (const auto& [name, tensor] : pair.tensors()) {
      if (!name.ends_with(
              "_rows")) {  // an alignment is for others, too, and rows are of one's data
        sums.emplace_back(space + "/" + name, tensor.to(at::kCPU).contiguous());
      }
    }
  }
  std::vector<fs::path> written;
  const auto write = [&](const fs::path& file, const auto& tensors) {
    if (!tensors.empty()) {
      checkpoint::write_safetensors(file, tensors);
      written.push_back(file);
    }
  };
  write(maps_file(directory, stage), matrices);
  write(directory / c10::str("moments-", stage, ".safetensors"), sums);
  return written;
}

nlohmann::ordered_json Alignment::whole_about(
    const fs::path& directory, const nlohmann::ordered_json& about) {
  auto whole = about;
  const auto& spaces = about.at("spaces");
  whole["format"] =
      std::any_of(spaces.begin(), spaces.end(), [](const auto& row) { return is_factored(row); })
          ? kFormatOfFactors
          : kFormat;
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".safetensors") {
      files[entry.path().filename().string()] =
          checkpoint::fingerprint(checkpoint::Checkpoint::open(entry.path()));
    }
  }
  whole["files"] = files;
  return whole;
}

}  // namespace theseus::transport
