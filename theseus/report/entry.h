#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace theseus::report {

// A JSON object of a document that lives longer, with fields that may be missing: null counts as
// that. A field of another type than asked for is an InputError that says where it stands.
class Entry {
 public:
  Entry(const nlohmann::json& object, std::string where);

  std::optional<double> number(std::string_view key) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback = {}) const;
  // A text, number or boolean in words; "" when there is none.
  std::string word(std::string_view key) const;
  // Lists are empty when there are none.
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<Entry> entries(std::string_view key) const;
  std::vector<std::vector<double>> matrix(std::string_view key) const;
  std::optional<Entry> entry(std::string_view key) const;

  // Sorted, without those that are null.
  std::vector<std::string> keys() const;
  // Every field in words as (name, value), objects in it as "name.field", long lists by their length.
  std::vector<std::pair<std::string, std::string>> flat(std::string_view key) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json* find_list(std::string_view key) const;
  [[noreturn]] void fail(
      std::string_view key, std::string_view expected, const nlohmann::json& found) const;

  const nlohmann::json* object_;
  std::string where_;
};

}  // namespace theseus::report
