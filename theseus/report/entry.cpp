#include "theseus/report/entry.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::report {
namespace {

using nlohmann::json;
using Rows = std::vector<std::pair<std::string, std::string>>;

std::string plain(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void flatten(const std::string& name, const json& value, Rows& rows) {
  constexpr size_t kMost = 32;
  if (value.is_object() && value.size() <= kMost) {
    for (const auto& [key, item] : value.items()) {
      flatten(name.empty() ? key : name + "." + key, item, rows);
    }
    return;
  }
  if (value.is_null()) {
    return;
  }
  const bool simple =
      value.is_array() && value.size() <= kMost &&
      std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_primitive(); });
  std::string text = value.is_structured() ? fmt::format("{} entries", value.size()) : plain(value);
  if (simple) {
    std::vector<std::string> words;
    std::transform(value.begin(), value.end(), std::back_inserter(words), plain);
    text = joined(words, kMost);
  }
  rows.emplace_back(name, text);
}

}  // namespace

Entry::Entry(const json& object, std::string where) : object_(&object), where_(std::move(where)) {
  require(object.is_object(), where_, ": expected an object, found ", printable(plain(object), 60));
}

const json* Entry::find(std::string_view key) const {
  const auto found = object_->find(std::string(key));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const json* Entry::find_list(std::string_view key) const {
  const auto* value = find(key);
  if (value != nullptr && !value->is_array()) {
    fail(key, "a list", *value);
  }
  return value;
}

void Entry::fail(std::string_view key, std::string_view expected, const json& found) const {
  throw InputError(c10::str(
      where_, ": ", printable(key), ": expected ", expected, ", found ",
      printable(found.dump(-1, ' ', false, json::error_handler_t::replace), 60)));
}

std::optional<double> Entry::number(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    fail(key, "a number", *value);
  }
  return value->get<double>();
}

double Entry::number(std::string_view key, double fallback) const {
  return number(key).value_or(fallback);
}

bool Entry::boolean(std::string_view key, bool fallback) const {
  const auto* value = find(key);
  if (value != nullptr && !value->is_boolean()) {
    fail(key, "true or false", *value);
  }
  return value == nullptr ? fallback : value->get<bool>();
}

std::string Entry::text(std::string_view key, std::string_view fallback) const {
  const auto* value = find(key);
  if (value != nullptr && !value->is_string()) {
    fail(key, "a text", *value);
  }
  return value == nullptr ? std::string(fallback) : value->get<std::string>();
}

std::string Entry::word(std::string_view key) const {
  const auto* value = find(key);
  if (value != nullptr && value->is_structured()) {
    fail(key, "a text or a number", *value);
  }
  return value == nullptr ? std::string() : plain(*value);
}

std::vector<std::string> Entry::texts(std::string_view key) const {
  std::vector<std::string> result;
  if (const auto* list = find_list(key)) {
    for (const auto& item : *list) {
      if (!item.is_string()) {
        fail(key, "a list of texts", item);
      }
      result.push_back(item.get<std::string>());
    }
  }
  return result;
}

std::vector<Entry> Entry::entries(std::string_view key) const {
  std::vector<Entry> result;
  if (const auto* list = find_list(key)) {
    for (const auto& item : *list) {
      result.emplace_back(item, fmt::format("{}: {}[{}]", where_, key, result.size()));
    }
  }
  return result;
}

std::vector<std::vector<double>> Entry::matrix(std::string_view key) const {
  std::vector<std::vector<double>> result;
  if (const auto* list = find_list(key)) {
    for (const auto& row : *list) {
      const bool numbers = row.is_array() && std::all_of(row.begin(), row.end(), [](const json& x) {
                             return x.is_number();
                           });
      if (!numbers || (!result.empty() && row.size() != result.front().size())) {
        fail(key, "rows of numbers, equally long", row);
      }
      result.push_back(row.get<std::vector<double>>());
    }
  }
  return result;
}

std::optional<Entry> Entry::entry(std::string_view key) const {
  const auto* value = find(key);
  return value == nullptr ? std::nullopt
                          : std::optional<Entry>(Entry(*value, fmt::format("{}: {}", where_, key)));
}

std::vector<std::string> Entry::keys() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : object_->items()) {
    if (!value.is_null()) {
      result.push_back(key);
    }
  }
  return result;
}

Rows Entry::flat(std::string_view key) const {
  Rows rows;
  if (const auto* value = find(key)) {
    flatten(std::string(key), *value, rows);
  }
  return rows;
}

}  // namespace theseus::report
