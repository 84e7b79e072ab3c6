#include "theseus/data/labels.h"

#include <charconv>
#include <set>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/base/text.h"
#include "theseus/data/listing.h"
#include "theseus/data/utf8.h"

namespace theseus::data {

ClassNames::ClassNames(std::vector<std::string> names, std::string origin)
    : names_(std::move(names)), origin_(std::move(origin)) {
  require(!names_.empty(), origin_, " names no classes");
  for (size_t i = 0; i < names_.size(); ++i) {
    require(!names_[i].empty(), origin_, ": class ", i, " has an empty name");
    require(
        is_utf8(names_[i]), origin_, ": the name of class ", i, ", '", printable(names_[i]),
        "', is not UTF-8");
    const bool added = numbers_.emplace(names_[i], static_cast<int64_t>(i)).second;
    require(added, origin_, ": the class '", printable(names_[i]), "' is there twice");
  }
}

int64_t ClassNames::checked(int64_t number, const std::string& where) const {
  require(
      number >= 0 && number < size(), where, ": label ", number, " is out of range; ", origin_,
      " has ", size(), " classes, 0 to ", size() - 1);
  return number;
}

int64_t ClassNames::named(std::string_view name, const std::string& where) const {
  const auto found = numbers_.find(std::string(name));
  require(
      found != numbers_.end(), where, ": unknown class '", printable(name), "'; ", origin_, " has ",
      printable(joined(names_, 10), 400));
  return found->second;
}

int64_t ClassNames::label(std::string_view word, const std::string& where) const {
  const auto number = find_integer(word);
  return number.has_value() && !numbers_.contains(std::string(word)) ? checked(*number, where)
                                                                     : named(word, where);
}

std::optional<ClassNames> find_class_names(
    const std::filesystem::path& folder, const std::string& stem) {
  for (const char* name : {"classnames.txt", "classes.txt"}) {
    if (is_file(folder / name)) {
      return ClassNames(lines_of(folder / name), (folder / name).string());
    }
  }
  const auto file = folder / (stem + ".json");
  if (stem.empty() || !is_file(file)) {
    return std::nullopt;
  }
  const auto json = Json::parse_file(file);
  return json.has("classes")
             ? std::optional<ClassNames>(ClassNames(json.texts("classes"), file.string()))
             : std::nullopt;
}

std::optional<int64_t> find_integer(std::string_view word) {
  int64_t number = 0;
  const auto* end = word.data() + word.size();
  const auto result = std::from_chars(word.data(), end, number);
  return !word.empty() && result.ec == std::errc() && result.ptr == end
             ? std::optional<int64_t>(number)
             : std::nullopt;
}

std::optional<ClassNames> classes_among(
    const std::vector<std::string>& words, const std::vector<std::string>& names) {
  std::set<std::string> found;
  for (size_t i = 0; i < words.size(); ++i) {
    require(!words[i].empty(), names[i], ": the label is empty");
    require(
        find_integer(words[i]).has_value() == find_integer(words[0]).has_value(), names[i],
        ": the label is '", printable(words[i]), "', and that of ", names[0], " is '",
        printable(words[0]), "'; labels are all numbers or all class names");
    found.insert(words[i]);
  }
  if (words.empty() || find_integer(words[0]).has_value()) {
    return std::nullopt;
  }
  return ClassNames({found.begin(), found.end()}, "what the labels name");
}

std::vector<int64_t> numbered(
    const std::vector<std::string>& words,
    const std::vector<std::string>& names,
    const std::optional<ClassNames>& classes) {
  std::vector<int64_t> labels;
  for (size_t i = 0; i < words.size(); ++i) {
    if (classes.has_value()) {
      labels.push_back(classes->label(words[i], names[i]));
      continue;
    }
    const auto number = find_integer(words[i]);
    require(
        number.has_value() && *number >= 0, names[i], ": label '", printable(words[i]),
        "' is out of range; labels are numbers from 0");
    labels.push_back(*number);
  }
  return labels;
}

}  // namespace theseus::data
