#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace theseus::output {

// Whether the option says where an input lies. What lies there is known by its hash.
bool is_input(const std::string& option);

// The options, as they were given, that decide a result: not those that say how fast it comes, nor
// where inputs lie.
nlohmann::ordered_json deciding_options(const nlohmann::ordered_json& words);

// JSON that is equal for runs that give the same result: {"version", "options", ..., "inputs": {WHAT: HASH}}. Only its
// "device", which is noted, may be another: it rounds otherwise.
// Finding it reads the inputs.
using Identity = std::function<nlohmann::ordered_json()>;

// A member of a document; null where there is none.
nlohmann::ordered_json part_of(const nlohmann::ordered_json& document, const char* key);

// What is compared: the same job may run on another device, and an earlier theseus had other words.
nlohmann::ordered_json comparable(nlohmann::ordered_json job);

// In what one identity is another than the earlier one: `what`, in words, and whether an input has another content.
struct Difference {
  std::string what;
  bool of_input = false;
};
Difference difference(const nlohmann::ordered_json& was, const nlohmann::ordered_json& is);

}  // namespace theseus::output
