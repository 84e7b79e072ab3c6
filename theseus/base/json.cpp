#include "theseus/base/json.h"

#include <cmath>
#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"

namespace theseus {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr int64_t kMaxFileBytes = int64_t{64} << 20;
constexpr size_t kMaxQuoted = 80;

std::string compact(const nlohmann::json& value) {
  return printable(
      value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kMaxQuoted);
}

std::string described(const nlohmann::json& value) {
  if (value.is_object()) {
    return "an object";
  }
  return value.is_array() ? "a list" : compact(value);
}

// Refuses duplicate keys (nlohmann keeps the last one in silence) and deep nesting (its writer and
// our readers recurse). A pass of its own over the text: the parser's callback would look through all
// siblings at the end of every object, which takes forever on a header of many tensors.
class Strictness final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Strictness(const std::string& origin) : origin_(origin) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(int64_t /*value*/) override { return true; }
  bool number_unsigned(uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return start(); }
  bool end_object() override { return end(); }
  bool start_array(size_t /*size*/) override { return start(); }
  bool end_array() override { return end(); }
  bool key(std::string& key) override {
    require(
        keys_.back().insert(key).second, origin_, ": the name '", printable(key),
        "' appears twice");
    return true;
  }
  // The parse proper says what is wrong.
  bool parse_error(
      size_t /*position*/,
      const std::string& /*token*/,
      const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  bool start() {
    keys_.emplace_back();
    require(keys_.size() <= kMaxDepth, origin_, ": nested deeper than ", kMaxDepth, " levels");
    return true;
  }
  bool end() {
    keys_.pop_back();
    return true;
  }

  const std::string& origin_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

Json::Json(
    std::shared_ptr<const nlohmann::json> document,
    const nlohmann::json* value,
    std::string origin,
    std::string path)
    : document_(std::move(document)),
      value_(value),
      origin_(std::move(origin)),
      path_(std::move(path)) {}

Json Json::parse_file(const std::filesystem::path& path) {
  return parse(read_text_file(path, kMaxFileBytes), path.string());
}

Json Json::parse(std::string_view text, const std::string& origin) {
  try {
    Strictness strictness(origin);
    nlohmann::json::sax_parse(text.begin(), text.end(), &strictness);
    auto document =
        std::make_shared<const nlohmann::json>(nlohmann::json::parse(text.begin(), text.end()));
    require(
        document->is_object(), origin, ": expected a JSON object, found ", described(*document));
    const auto* value = document.get();
    return Json(std::move(document), value, origin, "");
  } catch (const nlohmann::json::exception& error) {
    throw InputError(c10::str(origin, ": not valid JSON: ", printable(error.what(), 200)));
  }
}

const nlohmann::json* Json::find(std::string_view key) const {
  const auto it = value_->find(std::string(key));
  return it == value_->end() || it->is_null() ? nullptr : &*it;
}

const nlohmann::json& Json::at(std::string_view key) const {
  const auto* found = find(key);
  require(found != nullptr, where(key), " is missing");
  return *found;
}

void Json::fail(
    std::string_view key, std::string_view expected, const nlohmann::json& found) const {
  throw InputError(c10::str(where(key), ": expected ", expected, ", found ", described(found)));
}

bool Json::has(std::string_view key) const {
  return find(key) != nullptr;
}

Json Json::object(std::string_view key) const {
  const auto& value = at(key);
  if (!value.is_object()) {
    fail(key, "an object", value);
  }
  return Json(
      document_, &value, origin_,
      path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

namespace {

bool is_int64(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return value.is_number_integer();
}

}  // namespace

int64_t Json::integer(std::string_view key) const {
  const auto& value = at(key);
  if (!is_int64(value)) {
    fail(key, "an integer", value);
  }
  return value.get<int64_t>();
}

int64_t Json::integer(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

double Json::number(std::string_view key) const {
  const auto& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    fail(key, "a finite number", value);
  }
  return value.get<double>();
}

double Json::number(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool Json::boolean(std::string_view key, bool fallback) const {
  const auto* value = find(key);
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_boolean()) {
    fail(key, "true or false", *value);
  }
  return value->get<bool>();
}

std::string Json::text(std::string_view key) const {
  const auto& value = at(key);
  if (!value.is_string()) {
    fail(key, "a string", value);
  }
  return value.get<std::string>();
}

std::string Json::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

std::vector<int64_t> Json::integers(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) {
    return {};
  }
  if (is_int64(*value)) {
    return {value->get<int64_t>()};
  }
  if (!value->is_array()) {
    fail(key, "a list of integers", *value);
  }
  std::vector<int64_t> result;
  for (const auto& item : *value) {
    if (!is_int64(item)) {
      fail(key, "a list of integers", item);
    }
    result.push_back(item.get<int64_t>());
  }
  return result;
}

std::vector<std::string> Json::texts(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) {
    return {};
  }
  if (value->is_string()) {
    return {value->get<std::string>()};
  }
  if (!value->is_array()) {
    fail(key, "a list of strings", *value);
  }
  std::vector<std::string> result;
  for (const auto& item : *value) {
    if (!item.is_string()) {
      fail(key, "a list of strings", item);
    }
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::vector<std::string> Json::keys() const {
  std::vector<std::string> result;
  for (const auto& item : value_->items()) {
    result.push_back(item.key());
  }
  return result;
}

bool Json::equals(std::string_view key, std::string_view json) const {
  const auto* value = find(key);
  return (value == nullptr ? nlohmann::json() : *value) == nlohmann::json::parse(json);
}

std::string Json::dump(std::string_view key) const {
  const auto* value = find(key);
  return value == nullptr ? "null" : compact(*value);
}

std::string Json::where(std::string_view key) const {
  std::string path = path_;
  if (!key.empty()) {
    path.append(path.empty() ? "" : ".").append(key);
  }
  return path.empty() ? origin_ : origin_ + ": " + path;
}

}  // namespace theseus
