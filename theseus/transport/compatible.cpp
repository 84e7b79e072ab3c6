#include "theseus/transport/compatible.h"

#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"

namespace theseus::transport {
namespace {

namespace fs = std::filesystem;

std::string names_of(const model::Architecture& architecture) {
  std::string names;
  for (const auto& tower : architecture.towers) {
    names.append(names.empty() ? "" : ", ").append(tower.name);
  }
  return names;
}

// What decides which id a text gets. Settings beside it (padding, truncation) do not matter.
nlohmann::json vocabulary(const fs::path& tokenizer) {
  const auto file = Json::parse_file(tokenizer);
  const auto& whole = file.raw();
  nlohmann::json result;
  if (whole.contains("model")) {
    for (const char* key : {"vocab", "merges", "type"}) {
      result[key] = whole["model"].contains(key) ? whole["model"][key] : nlohmann::json();
    }
  }
  return result;
}

bool same_file(const fs::path& left, const fs::path& right) {
  if (left.filename() == "tokenizer.json") {
    return vocabulary(left) == vocabulary(right);
  }
  const MappedFile first(left), second(right);
  return std::ranges::equal(first.bytes(), second.bytes());
}

// False when there is nothing to compare.
bool require_same_tokenizer(const model::Model& source, const model::Model& target) {
  bool compared = false;
  const auto left = source.location().config.parent_path();
  const auto right = target.location().config.parent_path();
  for (const char* name :
       {"tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "spiece.model",
        "tokenizer.model"}) {
    std::error_code ignored;
    if (fs::is_regular_file(left / name, ignored) && fs::is_regular_file(right / name, ignored)) {
      require(
          same_file(left / name, right / name), "the tokenizers differ (", name,
          "): token i of the source is not token i of the target, so their rows do not pair; give "
          "texts as --examples, which pairs them by characters, or --tokens mean with "
          "source/input_ids and target/input_ids");
      compared = true;
    }
  }
  return compared;
}

}  // namespace

void require_one_family(const model::Model& source, const model::Model& target) {
  require(
      source.location().family == target.location().family, "the source is a ",
      source.location().family, " model and the target a ", target.location().family,
      " model; both must be of one family");
  const auto from = names_of(source.architecture()), to = names_of(target.architecture());
  require(from == to, "the source has the towers ", from, " and the target ", to);
}

std::map<std::string, const stats::Matcher*> matchers_of(
    const model::Architecture& target, const std::string& word, bool spans_known) {
  const bool images = std::any_of(
      target.towers.begin(), target.towers.end(),
      [](const auto& tower) { return tower.image > 0; });
  std::map<std::string, const stats::Matcher*> result;
  for (const auto& tower : target.towers) {
    const std::string fallback = tower.image > 0 ? "grid" : spans_known ? "offsets" : "text";
    const auto& asked = stats::all_matchers();
    const auto& matcher = find_plugin(asked, "matcher", word.empty() ? fallback : word);
    require(
        !matcher.images_only || images, "--tokens ", word,
        " is for images, and this model reads text; use text, mean or cls");
    require(
        !matcher.needs_spans || tower.image > 0 || spans_known, "--tokens ", word,
        " pairs tokens by the text they stand for, which these examples do not say, or need "
        "not "
        "because both models get the same ids; use text, or give texts and two tokenizers");
    const bool beside_images = tower.image == 0 && images;
    const bool fits = tower.image > 0 || !matcher.images_only;
    result[tower.name] =
        fits && !beside_images ? &matcher : &find_plugin(asked, "matcher", fallback);
  }
  return result;
}

bool require_one_vocabulary(
    const model::Model& source,
    const model::Model& target,
    const stats::Calibration& calibration,
    const std::map<std::string, const stats::Matcher*>& matchers) {
  const auto& text = find_plugin(stats::all_matchers(), "matcher", "text");
  const auto& linear = find_plugin(stats::all_matchers(), "matcher", "linear");
  const auto& towers = source.architecture().towers;
  bool certain = true;
  for (size_t t = 0; t < towers.size(); ++t) {
    const auto* matcher = matchers.at(towers[t].name);
    const bool paired = matcher == &text || matcher == &linear || calibration.shares_ids();
    if (towers[t].vocabulary == 0 || !paired) {
      continue;
    }
    const auto& other = target.architecture().towers[t];
    require(
        towers[t].vocabulary == other.vocabulary, "the vocabularies differ (", towers[t].vocabulary,
        " in the source, ", other.vocabulary,
        " in the target), so token i of one is not token i of the other; give texts as "
        "--examples, "
        "which pairs them by characters, or --tokens mean with source/input_ids and "
        "target/input_ids");
    certain = require_same_tokenizer(source, target);
  }
  return certain;
}

bool has_same_tokenizer(const model::Model& source, const model::Model& target) {
  try {
    return require_same_tokenizer(source, target);
  } catch (const InputError&) {
    return false;
  }
}

std::map<std::string, int64_t> tokens_by_tower(
    model::Model& model, std::string_view side, const model::Batch& batch) {
  const auto doing = c10::str(
      "trying the examples on the ", side, " ", model.location().weights.string(), " (", side,
      "/NAME is an input for this model alone)");
  return with_context(doing, [&] {
    auto pass = model.begin(batch);
    model.network().enter(pass);
    std::map<std::string, int64_t> tokens;
    for (const auto& tower : model.architecture().towers) {
      const auto stream = pass.streams.find(tower.name);
      if (stream != pass.streams.end()) {
        tokens[tower.name] = stream->second.size(1);
      }
    }
    return tokens;
  });
}

}  // namespace theseus::transport
