#include "theseus/output/identity.h"

#include <set>

#include "theseus/base/error.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;

std::string shown(const nlohmann::json& value) {
  return value.is_null()     ? "not given"
         : value.is_string() ? value.get<std::string>()
                             : value.dump();
}

}  // namespace

Difference difference(const ordered_json& was, const ordered_json& is) {
  if (!was.is_object()) {
    return {"it cannot be read"};
  }
  const auto find = [](const ordered_json& from, const std::string& key) {
    return from.is_object() && from.contains(key) ? from.at(key) : ordered_json();
  };
  const auto given = find(was, "options"), gives = find(is, "options");
  for (const auto& options : {given, gives}) {
    for (const auto& [name, value] : options.items()) {
      if (find(given, name) != find(gives, name)) {
        return {c10::str(
            name, " was ", shown(find(given, name)), " and is now ", shown(find(gives, name)))};
      }
    }
  }
  for (const char* key : {"version", "processes"}) {
    if (find(was, key) != find(is, key)) {
      return {c10::str(key, " was ", shown(find(was, key)), " and is now ", shown(find(is, key)))};
    }
  }
  const auto before = find(was, "inputs"), now = find(is, "inputs");
  for (const auto& inputs : {before, now}) {
    for (const auto& [what, hash] : inputs.items()) {
      if (find(before, what) != find(now, what)) {
        return {what + " has changed since, or is another one", /*of_input=*/true};
      }
    }
  }
  return {"its inputs have changed", /*of_input=*/true};
}

bool is_input(const std::string& option, const std::string& value) {
  static const std::set<std::string> kInputs = {
      "source",   "tuned",   "target", "calibration", "alignment",
      "model",    "data",    "head",   "start-from",  "validation",
      "familiar", "adapter", "update", "training",    "config"};
  static const std::set<std::string> kHeads = {"new", "zero-shot", "keep"};
  return kInputs.contains(option) && !(option == "head" && kHeads.contains(value));
}

ordered_json deciding_options(const ordered_json& words) {
  static const std::set<std::string> kOfTheRun = {"threads", "memory", "save-every", "device"};
  auto options = ordered_json::object();
  for (const auto& [name, value] : words.items()) {
    const auto text = value.is_string() ? value.get<std::string>() : "";
    if (!is_input(name, text) && !kOfTheRun.contains(name)) {
      options[name] = value;
    }
  }
  return options;
}

ordered_json part_of(const ordered_json& document, const char* key) {
  return document.is_object() && document.contains(key) ? document.at(key) : ordered_json();
}

ordered_json without_device(ordered_json job) {
  if (job.is_object()) {
    job.erase("device");
  }
  return job;
}

}  // namespace theseus::output
