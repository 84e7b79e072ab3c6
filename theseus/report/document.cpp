#include "theseus/report/document.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::report {
namespace {

namespace fs = std::filesystem;

struct Known {
  std::string_view word;
  Kind kind;
};
constexpr std::array<Known, 8> kKnown = {{
    {"transport", Kind::kTransport},
    {"align", Kind::kAlignment},
    {"evaluate", Kind::kEvaluate},
    {"sweep", Kind::kSweep},
    {"compare", Kind::kCompare},
    {"diagnose", Kind::kDiagnose},
    {"finetune", Kind::kFinetune},
    {"imitate", Kind::kImitation},
}};
constexpr std::array<const char*, 6> kFiles = {"theseus.json", "alignment.json", "evaluate.json",
                                               "sweep.json",   "compare.json",   "diagnose.json"};
constexpr const char* kExpected =
    "expected the theseus.json of a transport or an imitation, the alignment.json of an alignment, "
    "or JSON whose "
    "\"kind\" is evaluate, sweep, compare, diagnose or finetune";

// What transport and align write has no kind, but a version and the maps; what imitate writes has layers.
std::string kind_word(const Json& json) {
  if (json.has("kind")) {
    return json.text("kind");
  }
  if (json.has("theseus") && json.has("layers")) {
    return "imitate";
  }
  const bool carried = json.has("theseus") && json.has("spaces");
  return !carried ? "" : json.has("parameters") ? "transport" : json.has("towers") ? "align" : "";
}

Document known(const fs::path& path, Json json) {
  const auto word = kind_word(json);
  for (const auto& one : kKnown) {
    if (one.word == word) {
      return {.kind = one.kind, .path = path, .json = std::move(json)};
    }
  }
  std::vector<std::string> keys;
  for (const auto& key : json.keys()) {
    keys.push_back(printable(key, 40));
  }
  require(
      word.empty(), json.where(), " is of the kind '", printable(word, 40),
      "', which report does not know; ", kExpected);
  throw InputError(c10::str(
      json.where(), " is not a document of theseus: it holds ",
      keys.empty() ? "nothing" : joined(keys, 8), "; ", kExpected));
}

}  // namespace

Document read_document(std::string_view text, const std::string& origin) {
  return known(origin, Json::parse(text, origin));
}

std::vector<Document> read_run(const fs::path& path) {
  std::error_code ignored;
  require(fs::exists(path, ignored), "there is no ", path.string());
  if (!fs::is_directory(path, ignored)) {
    return {known(path, Json::parse_file(path))};
  }
  std::vector<Document> result;
  for (const char* name : kFiles) {
    if (fs::exists(path / name, ignored)) {
      result.push_back(known(path / name, Json::parse_file(path / name)));
    }
  }
  if (result.empty()) {  // several updates, each in a directory of its own
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(path, ignored)) {
      if (fs::exists(entry.path() / kFiles[0], ignored) && entry.path().extension() != ".partial") {
        inside.push_back(entry.path() / kFiles[0]);
      }
    }
    std::sort(inside.begin(), inside.end());
    for (const auto& file : inside) {
      result.push_back(known(file, Json::parse_file(file)));
    }
  }
  if (result.empty()) {
    std::string names;
    for (const char* name : kFiles) {
      names.append(names.empty() ? "" : ", ").append(name);
    }
    throw InputError(c10::str(
        path.string(), " has nothing to report on: none of ", names,
        " is in it; name a directory that theseus wrote, or a JSON file"));
  }
  return result;
}

std::string short_name(const std::string& path) {
  constexpr std::string_view kCache = "models--";
  const auto whole = fs::path(path).lexically_normal();
  for (const auto& part : whole) {
    auto name = part.string();
    if (name.starts_with(kCache)) {
      name.erase(0, kCache.size());
      const auto split = name.find("--");
      return split == std::string::npos ? name
                                        : name.substr(0, split) + "/" + name.substr(split + 2);
    }
  }
  const auto named = whole.has_filename() ? whole : whole.parent_path();
  const auto extension = named.extension();
  const bool weights = extension == ".safetensors" || extension == ".bin" || extension == ".pt";
  const auto folder = named.parent_path().filename();
  return (weights && !folder.empty() ? folder / named.filename() : named.filename()).string();
}

}  // namespace theseus::report
