#include "theseus/data/text/token_settings.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::data::text {
namespace {

constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

// "</s>" or {"content": "</s>", ...}.
void read_names(const Json& file, std::map<std::string, std::string>& names) {
  for (const std::string_view role : kRoles) {
    if (!file.has(role)) {
      continue;
    }
    const bool plain = file.raw().at(std::string(role)).is_string();
    names.emplace(role, plain ? file.text(role) : file.object(role).text("content"));
  }
}

int64_t parse_id(const std::string& text, const std::string& where) {
  int64_t id = -1;
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, id);
  require(
      result.ec == std::errc() && result.ptr == end && id >= 0, where, ": '", printable(text),
      "' is no id");
  return id;
}

void read_decoder(const Json& config, std::vector<AddedToken>& added) {
  if (!config.has("added_tokens_decoder")) {
    return;
  }
  const Json list = config.object("added_tokens_decoder");
  for (const std::string& key : list.keys()) {
    added.push_back(read_added_token(list.object(key), parse_id(key, list.where())));
  }
}

}  // namespace

std::string TokenSettings::name(const std::string& role, std::string_view fallback) const {
  const auto found = names.find(role);
  return found == names.end() ? std::string(fallback) : found->second;
}

bool TokenSettings::flag(std::string_view key, bool fallback) const {
  return config ? config->boolean(key, fallback) : fallback;
}

AddedToken read_added_token(const Json& token, int64_t id) {
  AddedToken made;
  made.content = token.text("content");
  made.id = id;
  require(id >= 0 && id < int64_t{1} << 24, token.where(), ": the id ", id, " is out of range");
  made.special = token.boolean("special", false);
  made.left_strip = token.boolean("lstrip", false);
  made.right_strip = token.boolean("rstrip", false);
  made.single_word = token.boolean("single_word", false);
  made.normalized = token.boolean("normalized", !made.special);
  return made;
}

void join_added(
    std::vector<AddedToken>& tokens,
    const std::vector<AddedToken>& more,
    const std::string& where) {
  for (const AddedToken& token : more) {
    const auto same = std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& other) {
      return other.content == token.content;
    });
    if (same == tokens.end()) {
      tokens.push_back(token);
      continue;
    }
    require(
        same->id == token.id, where, ": the token '", printable(token.content), "' has the ids ",
        same->id, " and ", token.id);
  }
}

std::optional<int64_t> find_token(
    const Vocabulary& vocabulary, const std::vector<AddedToken>& added, std::string_view content) {
  for (const AddedToken& token : added) {
    if (token.content == content) {
      return token.id;
    }
  }
  return vocabulary.find(content);
}

TokenSettings read_token_settings(const std::filesystem::path& directory) {
  TokenSettings made;
  if (const auto path = directory / "tokenizer_config.json"; std::filesystem::exists(path)) {
    made.config = Json::parse_file(path);
    read_names(*made.config, made.names);
    read_decoder(*made.config, made.added);
  }
  if (const auto path = directory / "special_tokens_map.json"; std::filesystem::exists(path)) {
    read_names(Json::parse_file(path), made.names);
  }
  if (const auto path = directory / "added_tokens.json"; std::filesystem::exists(path)) {
    const Json file = Json::parse_file(path);
    std::vector<AddedToken> listed;
    for (const std::string& content : file.keys()) {
      listed.push_back({.content = content, .id = file.integer(content)});
      const auto& names = made.names;
      listed.back().special = std::any_of(
          names.begin(), names.end(), [&](const auto& role) { return role.second == content; });
    }
    join_added(made.added, listed, file.where());
  }
  return made;
}

}  // namespace theseus::data::text
