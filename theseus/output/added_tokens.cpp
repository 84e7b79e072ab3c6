#include "theseus/output/added_tokens.h"

#include <fstream>
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

using Tokens = std::map<int64_t, std::string>;  // by id

// {"token": id, ...}, or [["token", score], ...] in the order of the ids.
void add_vocabulary(const nlohmann::json& vocabulary, Tokens& tokens) {
  for (const auto& [name, id] : vocabulary.items()) {
    if (vocabulary.is_object() && id.is_number_integer()) {
      tokens[id.get<int64_t>()] = name;
    } else if (vocabulary.is_array() && id.is_array() && !id.empty() && id[0].is_string()) {
      tokens[std::stoll(name)] = id[0].get<std::string>();  // items() of a list counts
    }
  }
}

void add_lines(const fs::path& file, Tokens& tokens) {
  std::ifstream lines(file);
  int64_t id = 0;
  for (std::string line; std::getline(lines, line); ++id) {
    tokens[id] = line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
  }
}

// Every token that the tokenizer's files name. One that is all in a binary file has those beside it only.
Tokens tokens_of(const fs::path& directory) {
  Tokens tokens;
  const auto whole = read(directory / "tokenizer.json");
  const auto model = whole.value("model", nlohmann::json::object());
  if (model.is_object() && model.contains("vocab")) {
    add_vocabulary(model["vocab"], tokens);
  } else {
    add_vocabulary(read(directory / "vocab.json"), tokens);
    add_lines(directory / "vocab.txt", tokens);
  }
  add_vocabulary(read(directory / "added_tokens.json"), tokens);
  for (const auto& one : whole.value("added_tokens", nlohmann::json::array())) {
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

// The tokens of `tuned` that `before`, which may be unknown, did not have.
Tokens new_among(const Tokens& tuned, const Tokens& before, int64_t source_rows) {
  const bool complete = 2 * std::ssize(before) > source_rows;  // else most are in a binary file
  Tokens found;
  for (const auto& [id, name] : tuned) {
    const auto known = before.find(id);
    const bool is_new =
        known == before.end() ? id >= source_rows || complete : known->second != name;
    if (is_new) {
      found.emplace(id, name);
    }
  }
  return found;
}

// Rows that the tuned model has more, in words: which are of tokens, and which only fill up.
std::string rows_text(const Tokens& added, bool known, int64_t source_rows, int64_t rows) {
  constexpr size_t kShown = 10;
  std::vector<std::string> names;
  int64_t of_tokens = 0;
  for (const auto& [id, name] : added) {
    names.push_back(name);
    of_tokens += id >= source_rows && id < source_rows + rows ? 1 : 0;
  }
  const auto padding = rows - of_tokens;
  auto text = c10::str(
      "the tuned model has ", rows, " more rows in its embedding than the source (", source_rows,
      ")");
  if (!known) {
    return text + ", and no file says for which tokens";
  }
  if (!added.empty()) {
    text += c10::str(
        ": ", of_tokens, " of them for ", added.size(),
        added.size() == 1 ? " added token, " : " added tokens, ", joined(names, kShown));
  }
  return padding > 0 ? text + c10::str(
                                  added.empty() ? ": " : ", and ", padding,
                                  " of padding, which no token has")
                     : text;
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
  const auto source_rows = vocabulary_of(opened.source);
  const auto rows = opened.update->added_rows();
  const auto tuned = tokens_of(options.tuned);
  const auto added_now =
      new_among(tuned, tokens_of(directory_of(opened.source.location())), source_rows);
  const bool known = !tuned.empty();
  for (const auto& [id, name] : added_now) {
    added.names.push_back(name);
  }
  const auto needed = !added_now.empty() ? added_now.rbegin()->first + 1
                      : known            ? source_rows
                                         : source_rows + rows;
  const auto room = vocabulary_of(opened.target);
  const bool same = transport::has_same_tokenizer(opened.source, opened.target);
  added.fits = same && needed <= room;
  added.notes.push_back(
      rows_text(added_now, known, source_rows, rows) +
      ". These rows are not carried, everything else is");
  if (known && added_now.empty()) {
    return added;  // the tokens are the source's: there is nothing to do
  }
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
