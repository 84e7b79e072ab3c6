#include "theseus/output/identity.h"

#include <map>
#include <set>

#include "theseus/base/error.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;

// Of an option, or an input, and of its values.
void take_new_name(
    const char* old,
    const char* name,
    const std::map<std::string, std::string>& values,
    ordered_json& members) {
  const auto found = members.find(old);
  if (found == members.end()) {
    return;
  }
  auto value = *found;
  if (const auto word = value.is_string() ? values.find(value.get<std::string>()) : values.end();
      word != values.end()) {
    value = word->second;
  }
  members.erase(old);
  members[name] = value;
}

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

bool is_input(const std::string& option) {
  static const std::set<std::string> kInputs = {"source",    "tuned",      "target",     "examples",
                                                "alignment", "model",      "data",       "labelled",
                                                "head-from", "start-from", "validation", "familiar",
                                                "adapter",   "update",     "training",   "config"};
  return kInputs.contains(option);
}

ordered_json deciding_options(const ordered_json& words) {
  static const std::set<std::string> kOfTheRun = {"threads", "memory", "save-every", "device"};
  auto options = ordered_json::object();
  for (const auto& [name, value] : words.items()) {
    if (!is_input(name) && !kOfTheRun.contains(name)) {
      options[name] = value;
    }
  }
  return options;
}

ordered_json part_of(const ordered_json& document, const char* key) {
  return document.is_object() && document.contains(key) ? document.at(key) : ordered_json();
}

ordered_json comparable(ordered_json job) {
  if (!job.is_object()) {
    return job;
  }
  job.erase("device");
  if (job.contains("inputs")) {
    take_new_name("the calibration", "the set of examples", {}, job["inputs"]);
  }
  if (job.contains("options")) {
    auto& options = job["options"];
    take_new_name("match", "tokens", {{"tokens", "text"}}, options);
    take_new_name(
        "depth", "depth", {{"match", "divided"}, {"repeat", "whole"}, {"interpolate", "stretch"}},
        options);
    take_new_name("heads", "head", {{"true", "carry"}}, options);
    take_new_name("method", "method", {{"identity", "copy"}}, options);
    options.erase("labels");  // which examples have them is an input
  }
  return nlohmann::json(job);  // in the order of names
}

}  // namespace theseus::output
