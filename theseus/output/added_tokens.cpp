#include "theseus/output/added_tokens.h"

#include <map>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/base/made_files.h"
#include "theseus/base/text.h"
#include "theseus/output/side_files.h"
#include "theseus/transport/compatible.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
    "chat_template.json"};

nlohmann::json read(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? Json::parse_file(file).raw()
                                            : nlohmann::json::object();
}

// Every token that stands beside the vocabulary proper, by its id.
std::map<int64_t, std::string> tokens_beside(const fs::path& directory) {
  std::map<int64_t, std::string> tokens;
  const auto alone = read(directory / "added_tokens.json");
  for (const auto& [name, id] : alone.items()) {
    if (id.is_number_integer()) {
      tokens[id.get<int64_t>()] = name;
    }
  }
  const auto listed =
      read(directory / "tokenizer.json").value("added_tokens", nlohmann::json::array());
  for (const auto& one : listed) {
    if (one.is_object() && one.contains("id") && one.contains("content") &&
        one["id"].is_number_integer() && one["content"].is_string()) {
      tokens[one["id"].get<int64_t>()] = one["content"].get<std::string>();
    }
  }
  const auto decoder = read(directory / "tokenizer_config.json")
                           .value("added_tokens_decoder", nlohmann::json::object());
  for (const auto& [id, one] : decoder.items()) {
    const bool number =
        !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == std::string::npos;
    if (number && one.is_object() && one.contains("content") && one["content"].is_string()) {
      tokens[std::stoll(id)] = one["content"].get<std::string>();
    }
  }
  return tokens;
}

int64_t vocabulary_of(const model::Model& model) {
  int64_t rows = 0;
  for (const auto& tower : model.architecture().towers) {
    rows = std::max(rows, tower.vocabulary);
  }
  return rows;
}

}  // namespace

AddedTokens added_tokens(const JobOptions& options, const Opened& opened) {
  AddedTokens added;
  if (!opened.update || opened.update->added_rows() == 0) {
    return added;
  }
  constexpr size_t kShown = 10;
  const auto before = tokens_beside(directory_of(opened.source.location()));
  const auto source_rows = vocabulary_of(opened.source);
  int64_t needed = 0;
  for (const auto& [id, name] : tokens_beside(options.tuned)) {
    const auto known = before.find(id);
    if (known == before.end() ? id >= source_rows || !before.empty() : known->second != name) {
      added.names.push_back(name);
      needed = std::max(needed, id + 1);
    }
  }
  const auto rows = opened.update->added_rows();
  if (added.names.empty()) {
    needed = source_rows + rows;
  }
  const auto room = vocabulary_of(opened.target);
  const bool same = transport::has_same_tokenizer(opened.source, opened.target);
  added.fits = same && needed <= room;
  added.notes.push_back(c10::str(
      "the tuned model has ", rows, " more rows in its embedding than the source (", source_rows,
      ")",
      added.names.empty() ? "" : c10::str(", for the added tokens ", joined(added.names, kShown)),
      ": these rows are not carried, everything else is"));
  if (added.fits) {
    added.notes.push_back(
        "the tuned model's tokenizer files and chat template lie beside the output; the rows of "
        "the added tokens are the target's own, which nobody trained: train them before they are "
        "used");
  } else {
    added.notes.push_back(c10::str(
        "the output keeps the target's tokenizer: ",
        same ? c10::str("its embedding has ", room, " rows and the added tokens need ", needed)
             : "its vocabulary is not known to be the source's",
        "; to use the added tokens, add them to its tokenizer (tokenizer.add_tokens), call "
        "model.resize_token_embeddings(len(tokenizer)), and train the new rows"));
  }
  return added;
}

bool is_tokenizer_file(const std::string& name) {
  return std::find(std::begin(kTokenizerFiles), std::end(kTokenizerFiles), name) !=
         std::end(kTokenizerFiles);
}

void copy_tokenizer(const fs::path& tuned, const fs::path& directory) {
  for (const char* name : kTokenizerFiles) {
    std::error_code error;
    if (fs::is_regular_file(tuned / name, error)) {
      note_made(directory / name);
      fs::copy_file(tuned / name, directory / name, error);
      require(!error, "copying ", (tuned / name).string(), ": ", error.message());
    }
  }
}

}  // namespace theseus::output
