#include "theseus/output/named_base.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/family.h"
#include "theseus/output/side_files.h"
#include "theseus/update/adapter.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

// What a tuned model says of its base.
struct Naming {
  fs::path folder, file;  // of the tuned model, and what says it
  const char* key = "";
  std::string name;  // empty: it says nothing
};

Naming naming_of(const fs::path& tuned) {
  std::error_code ignored;
  Naming naming;
  naming.folder = fs::is_directory(tuned, ignored) ? tuned : tuned.parent_path();
  const bool adapter = update::is_adapter(naming.folder);
  naming.file = naming.folder / (adapter ? "adapter_config.json" : "config.json");
  naming.key = adapter ? "base_model_name_or_path" : "_name_or_path";
  if (fs::is_regular_file(naming.file, ignored)) {
    naming.name = Json::parse_file(naming.file).text(naming.key, "");
  }
  return naming;
}

// The directory that is named, unless that is the tuned model's own.
std::optional<fs::path> find_directory(const Naming& naming) {
  std::error_code ignored;
  for (const auto& path : {fs::path(naming.name), naming.folder / naming.name}) {
    if (fs::is_directory(path, ignored) && !fs::equivalent(path, naming.folder, ignored)) {
      return path;
    }
  }
  return std::nullopt;
}

// What the model at a path, or of a name, is called. Below a hub's cache that is said some directories higher:
// models--ORGANISATION--NAME/snapshots/HASH.
std::string last_part(const fs::path& given) {
  auto path = given.lexically_normal();
  path = path.has_filename() ? path : path.parent_path();
  if (path.parent_path().filename() == "snapshots") {
    const auto name = path.parent_path().parent_path().filename().string();
    const auto dashes = name.rfind("--");
    return dashes == std::string::npos ? name : name.substr(dashes + 2);
  }
  return path.filename().string();
}

bool is_letter(char letter) {
  return letter >= 'a' && letter <= 'z';
}

// The parts of a name that tell a model, letters and numbers apart: not those that say what it is for, how it is stored
// or where it lies. A number alone, or a hash, tells nothing.
std::set<std::string> telling_parts(const std::string& name) {
  static const std::set<std::string> kOthers = {
      "base",    "model", "models", "source", "target",  "old",    "new",         "tuned",
      "copy",    "local", "main",   "output", "weights", "merged", "checkpoint",  "pretrained",
      "float32", "fp32",  "bf16",   "fp16",   "float16", "hf",     "safetensors", "pytorch",
      "final",   "best",  "latest", "start",  "my",      "the",    "bfloat16",    "original"};
  constexpr size_t kLongest = 20;  // what is longer is a hash
  std::set<std::string> parts;
  std::string word;
  for (const unsigned char letter : name + "-") {
    if (std::isalnum(letter) != 0) {
      word += static_cast<char>(std::tolower(letter));
      continue;
    }
    const bool tells = !kOthers.contains(word) && word.size() <= kLongest;
    for (size_t begin = 0, end = 0; tells && begin < word.size(); begin = end) {
      while (end < word.size() && is_letter(word[end]) == is_letter(word[begin])) {
        ++end;
      }
      parts.insert(word.substr(begin, end - begin));
    }
    word.clear();
  }
  const auto has_letter = [](const std::string& part) { return is_letter(part.front()); };
  return std::any_of(parts.begin(), parts.end(), has_letter) ? parts : std::set<std::string>();
}

// Names that only say "base" tell nothing, nor does "llama" for llama-2-7b.
bool plainly_differ(const std::string& named, const std::string& ours) {
  const auto wanted = telling_parts(named), found = telling_parts(ours);
  const bool short_form =
      std::includes(wanted.begin(), wanted.end(), found.begin(), found.end()) &&
      std::all_of(found.begin(), found.end(), [](const auto& part) { return is_letter(part[0]); });
  return !wanted.empty() && !found.empty() && wanted != found && !short_form;
}

// By their sizes and their small tensors, norms and biases among them: reading all of a large model is too much for a
// note. Nothing where the directory holds no such model.
std::optional<bool> has_other_weights(const fs::path& directory, const model::Model& source) {
  try {
    const auto& family =
        find_plugin(model::all_families(), "model family", source.location().family);
    const auto base = checkpoint::Checkpoint::open(directory, family.weights);
    const auto& ours = source.checkpoint();
    constexpr int64_t kSmall = 65536;
    return base.bytes() != ours.bytes() || base.tensors().size() != ours.tensors().size() ||
           std::any_of(base.tensors().begin(), base.tensors().end(), [&](const auto& info) {
             if (info.elements() > kSmall) {
               return false;
             }
             const auto* there = ours.find(info.name);
             return there == nullptr || there->dtype != info.dtype ||
                    !at::equal(base.tensor(info.name), ours.tensor(info.name));
           });
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

NamedBase named_base(const fs::path& tuned) {
  std::error_code ignored;
  require(fs::exists(tuned, ignored), "cannot open ", tuned.string(), ": it does not exist");
  const auto naming = naming_of(tuned);
  require(
      !naming.name.empty(), "--source is required: ", tuned.string(), " names no base of its own (",
      naming.key, " in ", naming.file.string(), ")");
  if (const auto path = find_directory(naming)) {
    return {
        .path = *path,
        .note = c10::str(
            "the source is ", path->string(), ", which ", naming.file.string(), " names (",
            naming.key, ")")};
  }
  throw InputError(c10::str(
      "--source is required: ", naming.file.string(), " names the base '", naming.name, "' (",
      naming.key, "), which is no other directory here; download it, and give its directory as ",
      "--source"));
}

std::string note_on_another_base(const fs::path& tuned, const model::Model& source) {
  const auto naming = naming_of(tuned);
  const auto ours = directory_of(source.location());
  if (naming.name.empty() || ours.empty()) {
    return "";
  }
  std::error_code ignored;
  if (const auto path = find_directory(naming)) {
    const bool other =
        !fs::equivalent(*path, ours, ignored) && has_other_weights(*path, source).value_or(false);
    return other ? c10::str(
                       naming.file.string(), " names the base ", path->string(), " (", naming.key,
                       "), whose weights are others than those of ", ours.string(),
                       "; what was learnt on another base does not fit this one: give its own")
                 : "";
  }
  const auto name = last_part(naming.name);
  const auto config = ours / "config.json";
  const auto origin = fs::is_regular_file(config, ignored)
                          ? Json::parse_file(config).text("_name_or_path", "")
                          : std::string();
  const auto itself = last_part(fs::absolute(naming.folder, ignored));
  const bool other = last_part(origin) != name && telling_parts(itself) != telling_parts(name) &&
                     plainly_differ(name, last_part(fs::absolute(ours, ignored)));
  return other ? c10::str(
                     naming.file.string(), " names the base '", printable(naming.name), "' (",
                     naming.key, "), and the base here, ", ours.string(), ", is called otherwise",
                     "; whether they are the same model could not be checked")
               : "";
}

}  // namespace theseus::output
