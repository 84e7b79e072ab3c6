#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/base/json.h"
#include "theseus/data/text/added_tokens.h"
#include "theseus/data/text/vocabulary.h"

namespace theseus::data::text {

// What the files beside a vocabulary say: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json, each of which may be missing.
struct TokenSettings {
  std::optional<Json> config;
  std::map<std::string, std::string> names;  // "eos_token" and the like: content
  std::vector<AddedToken> added;             // with the ids these files give

  std::string name(const std::string& role, std::string_view fallback) const;
  bool flag(std::string_view key, bool fallback) const;
};

TokenSettings read_token_settings(const std::filesystem::path& directory);

// One object of tokenizer.json's added_tokens or of added_tokens_decoder.
AddedToken read_added_token(const Json& token, int64_t id);

// Adds what is not in `tokens` yet; a content with two ids is an InputError.
void join_added(
    std::vector<AddedToken>& tokens, const std::vector<AddedToken>& more, const std::string& where);

// The id of a token's content; none when neither list has it.
std::optional<int64_t> find_token(
    const Vocabulary& vocabulary, const std::vector<AddedToken>& added, std::string_view content);

}  // namespace theseus::data::text
