#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/base/json.h"
#include "theseus/report/entry.h"

namespace theseus::report {

enum class Kind {
  kTransport,
  kAlignment,
  kEvaluate,
  kSweep,
  kCompare,
  kDiagnose,
  kFinetune,
  kImitation
};

// A JSON file that a command of theseus wrote.
struct Document {
  Kind kind;
  std::filesystem::path path;
  Json json;

  Entry entry() const { return Entry(json.raw(), json.where()); }
};

// The document in a file, or every one in a directory that has its usual name (theseus.json,
// alignment.json, evaluate.json, sweep.json, compare.json, diagnose.json). Throws InputError when
// there is none, and for JSON that is none of these.
std::vector<Document> read_run(const std::filesystem::path& path);

// The same for text, which `origin` names in messages.
Document read_document(std::string_view text, const std::string& origin);

// "models/clip/model.safetensors" -> "clip/model.safetensors", "models/clip" -> "clip",
// ".../models--org--name/snapshots/1f2e" -> "org/name".
std::string short_name(const std::string& path);

}  // namespace theseus::report
