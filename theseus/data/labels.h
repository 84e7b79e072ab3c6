#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace theseus::data {

// The names of classes, in the order of their numbers.
class ClassNames {
 public:
  // Throws InputError for none, and for a name that is empty or there twice; `origin` is for messages.
  ClassNames(std::vector<std::string> names, std::string origin);

  // Of a class name; of a name or a number below size(); of a number. All throw InputError that begins with
  // `where`.
  int64_t named(std::string_view name, const std::string& where) const;
  int64_t label(std::string_view word, const std::string& where) const;
  int64_t checked(int64_t number, const std::string& where) const;
  const std::vector<std::string>& names() const { return names_; }
  int64_t size() const { return static_cast<int64_t>(names_.size()); }

 private:
  std::vector<std::string> names_;
  std::string origin_;
  std::unordered_map<std::string, int64_t> numbers_;
};

// From classnames.txt or classes.txt in the folder (one name a line), or STEM.json ("classes": [...]).
std::optional<ClassNames> find_class_names(
    const std::filesystem::path& folder, const std::string& stem);

// The whole of `word` as a number.
std::optional<int64_t> find_integer(std::string_view word);

// Classes of labels that are names, sorted; nothing when all are numbers. Throws InputError when some are
// numbers and some are not; `names` are of the examples.
std::optional<ClassNames> classes_among(
    const std::vector<std::string>& words, const std::vector<std::string>& names);
// With no `classes` the words are numbers, of which none is negative.
std::vector<int64_t> numbered(
    const std::vector<std::string>& words,
    const std::vector<std::string>& names,
    const std::optional<ClassNames>& classes);

}  // namespace theseus::data
