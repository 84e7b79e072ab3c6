#include "theseus/cli/old_words.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <set>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cluster/place.h"

namespace theseus::cli {
namespace {

using Notes = std::vector<std::string>;
using Lines = std::vector<RecipeLine>;
using Words = std::map<std::string, std::string>;

const std::set<std::string> kTransports = {"plan", "align", "transport", "diagnose"};
// What became part of a method; those without a value first.
const std::set<std::string> kFlagsOfMethods = {"center", "stream"};
const std::set<std::string> kOptionsOfMethods = {"whiten", "ridge", "rank", "statistics"};
const std::set<std::string> kOldFlags = {"center", "stream", "heads", "labels"};
// What a command line may give as two words, and is looked at here.
const std::set<std::string> kOfTwoWords = {"calibration", "examples", "match",      "tokens",
                                           "depth",       "method",   "methods",    "whiten",
                                           "ridge",       "rank",     "statistics", "head"};

void add_note(const std::string& old, const std::string& today, Notes& notes) {
  const auto note = old + " is an old word and still works; it is now " + today;
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
    notes.push_back(note);
  }
}

// As CLI11 and YAML spell it.
bool is_on(const RecipeLine& line) {
  static const std::set<std::string> kOn = {"true", "yes", "on", "1"};
  static const std::set<std::string> kOff = {"false", "no", "off", "0"};
  auto word = line.value;
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  require(
      kOn.contains(word) || kOff.contains(word), "--", line.name, " is '",
      printable(line.value, 80), "'; expected true or false");
  return kOn.contains(word);
}

void replace_value(const Words& words, RecipeLine& line, Notes& notes) {
  if (const auto found = words.find(line.value); found != words.end()) {
    add_note("--" + line.name + " " + found->first, "--" + line.name + " " + found->second, notes);
    line.value = found->second;
  }
}

void rename(const std::string& today, RecipeLine& line, Notes& notes) {
  add_note("--" + line.name, "--" + today, notes);
  line.name = today;
}

// One method with its options; a comparison had identity, and stream as an option of procrustes.
std::string with_new_method(const std::string& word, Notes& notes) {
  constexpr std::string_view kCopy = "identity", kMaps = "procrustes", kStream = ":stream";
  const auto end = std::min(word.find(':'), word.size());
  auto method = word.substr(0, end), options = word.substr(end);
  const auto stream = (options + ":").find(std::string(kStream) + ":");
  if (method == kCopy) {
    method = "copy";
  } else if (method == kMaps && stream != std::string::npos) {
    method = "stream";
    options.erase(stream, kStream.size());
  } else {
    return word;
  }
  add_note("the method " + word, method + options, notes);
  return method + options;
}

std::string with_new_methods(const std::string& list, Notes& notes) {
  std::string result;
  for (size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    result += (begin == 0 ? "" : ",") + with_new_method(list.substr(begin, end - begin), notes);
    begin = end + 1;
  }
  return result;
}

// Names and values, each line by itself.
void use_new_words(const std::string& command, RecipeLine& line, Notes& notes) {
  const bool carries = kTransports.contains(command);
  const bool compares = command == "compare";
  if (line.name == "calibration" && (carries || command == "imitate")) {
    rename("examples", line, notes);
  } else if (line.name == "match" && (carries || compares || command == "imitate")) {
    rename("tokens", line, notes);
    line.value = line.value == "tokens" ? "text" : line.value;
  } else if (line.name == "depth" && (carries || compares)) {
    replace_value(
        {{"match", "divided"}, {"repeat", "whole"}, {"interpolate", "stretch"}}, line, notes);
  } else if (line.name == "heads" && carries) {
    add_note("--heads", "--head carry", notes);
    line = {line.number, "head", is_on(line) ? "carry" : "leave"};
  } else if (line.name == "head" && (command == "evaluate" || command == "sweep")) {
    rename("head-from", line, notes);
  } else if (line.name == "method" && carries) {
    line.value = with_new_method(line.value, notes);
  } else if (line.name == "methods" && compares) {
    line.value = with_new_methods(line.value, notes);
  }
}

// --labels said that labels of the examples may be used.
void replace_labels(const std::string& command, Lines& lines, Notes& notes) {
  const auto labels = std::find_if(
      lines.begin(), lines.end(), [](const auto& line) { return line.name == "labels"; });
  if (labels == lines.end()) {
    return;
  }
  const bool on = is_on(*labels);
  lines.erase(labels);
  if (command == "compare") {
    notes.emplace_back(
        "--labels is an old word and not needed: methods that learn from labels take those of the "
        "setting's data");
    return;
  }
  add_note("--labels", "--labelled DATA instead of --examples DATA", notes);
  for (auto& line : lines) {
    line.name = on && line.name == "examples" ? "labelled" : line.name;
  }
}

// Options that belong to a method behind its name, in the order in which they come.
void put_into_method(Lines& lines, Notes& notes) {
  const auto belongs = [](const RecipeLine& line) {
    return kFlagsOfMethods.contains(line.name) || kOptionsOfMethods.contains(line.name);
  };
  if (std::none_of(lines.begin(), lines.end(), belongs)) {
    return;
  }
  auto method = std::find_if(
      lines.rbegin(), lines.rend(), [](const auto& line) { return line.name == "method"; });
  auto words = method == lines.rend() ? std::string("procrustes") : method->value;
  for (const auto& line : lines) {
    const bool flag = kFlagsOfMethods.contains(line.name);
    if (!belongs(line) || (flag && !is_on(line))) {
      continue;
    }
    const bool stream = line.name == "stream" && words.substr(0, words.find(':')) == "procrustes";
    words = stream ? "stream" + words.substr(std::min(words.find(':'), words.size()))
                   : words + ":" + line.name + (flag ? "" : "=" + line.value);
    add_note("--" + line.name, "--method " + words, notes);
  }
  if (method != lines.rend()) {
    method->value = words;
  } else if (words != "procrustes") {
    lines.push_back({0, "method", words});
  }
  std::erase_if(lines, belongs);
}

void merge(const std::string& command, Lines& lines, Notes& notes) {
  if (kTransports.contains(command) || command == "compare") {
    replace_labels(command, lines, notes);
  }
  if (kTransports.contains(command)) {
    put_into_method(lines, notes);
  }
}

// Options that are looked at here by name and value; all else has no name.
Lines lines_of(const std::vector<std::string>& words) {
  Lines lines;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    const auto equals = std::min(word.find('='), word.size());
    const auto name = word.starts_with("--") ? word.substr(2, equals - 2) : "";
    if (kOldFlags.contains(name)) {
      lines.push_back({0, name, equals < word.size() ? word.substr(equals + 1) : "true"});
    } else if (kOfTwoWords.contains(name) && equals < word.size()) {
      lines.push_back({0, name, word.substr(equals + 1)});
    } else if (kOfTwoWords.contains(name) && i + 1 < words.size()) {
      lines.push_back({0, name, words[++i]});
    } else {
      lines.push_back({0, "", word});
    }
  }
  return lines;
}

}  // namespace

std::string new_command(const std::string& command, Notes& notes) {
  if (command != "verify") {
    return command;
  }
  add_note("the command verify", "forward --golden FILE", notes);
  return "forward";
}

std::vector<std::string> with_new_words(const std::vector<std::string>& words, Notes& notes) {
  if (words.empty()) {
    return words;
  }
  const auto command = new_command(words.front(), notes);
  auto lines = lines_of({words.begin() + 1, words.end()});
  const auto found = notes.size();
  for (auto& line : lines) {
    use_new_words(command, line, notes);
  }
  merge(command, lines, notes);
  std::vector<std::string> result = {command};
  if (notes.size() == found) {  // as it was typed
    result.insert(result.end(), words.begin() + 1, words.end());
    return result;
  }
  for (const auto& line : lines) {
    if (!line.name.empty()) {
      result.push_back("--" + line.name);
    }
    result.push_back(line.value);
  }
  return result;
}

Lines with_new_words(
    const std::string& command,
    const Lines& recipe,
    const std::vector<std::string>& more,
    Notes& notes) {
  auto lines = recipe;
  auto typed = lines_of(more);
  for (auto* some : {&lines, &typed}) {
    for (auto& line : *some) {
      use_new_words(command, line, notes);
    }
  }
  const auto is_typed = [&](const RecipeLine& line) {
    return std::any_of(typed.begin(), typed.end(), [&](const auto& other) {
      return other.name.empty() ? other.value == "--" + line.name ||
                                      other.value.starts_with("--" + line.name + "=")
                                : other.name == line.name;
    });
  };
  std::erase_if(lines, is_typed);
  lines.insert(lines.end(), typed.begin(), typed.end());
  merge(command, lines, notes);
  return lines;
}

void print_notes(const Notes& notes, const std::vector<std::string>& words) {
  const bool quiet = std::find(words.begin(), words.end(), "--quiet") != words.end();
  if (notes.empty() || quiet || !cluster::find_place().first()) {
    return;
  }
  for (const auto& note : notes) {
    std::fprintf(stderr, "note: %s\n", without_controls(note).c_str());
  }
}

}  // namespace theseus::cli
