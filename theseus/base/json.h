#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace theseus {

// A read-only JSON value that knows where it stands: every error names the file and the path in it,
// as in "config.json: text_config.hidden_size: expected an integer, found "768"".
// All getters throw InputError. A key whose value is null counts as absent.
class Json {
 public:
  // Refuses what is not JSON, duplicate keys, more than 64 levels and more than 64 MiB.
  static Json parse_file(const std::filesystem::path& path);
  static Json parse(std::string_view text, const std::string& origin);

  bool has(std::string_view key) const;
  Json object(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback) const;

  // An integer or a list of integers; empty when absent.
  std::vector<int64_t> integers(std::string_view key) const;
  // A string or a list of strings; empty when absent.
  std::vector<std::string> texts(std::string_view key) const;

  // The keys of this object, sorted; null values included.
  std::vector<std::string> keys() const;
  // Whether the value is the one that `json` text says; 1 and 1.0 are the same.
  bool equals(std::string_view key, std::string_view json) const;
  // The value as compact JSON text, for messages.
  std::string dump(std::string_view key) const;

  // "file: path.to.key", the way errors begin.
  std::string where(std::string_view key = {}) const;
  const nlohmann::json& raw() const { return *value_; }

 private:
  Json(
      std::shared_ptr<const nlohmann::json> document,
      const nlohmann::json* value,
      std::string origin,
      std::string path);
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json& at(std::string_view key) const;
  [[noreturn]] void fail(
      std::string_view key, std::string_view expected, const nlohmann::json& found) const;

  std::shared_ptr<const nlohmann::json> document_;
  const nlohmann::json* value_;
  std::string origin_;
  std::string path_;
};

}  // namespace theseus
