#include "theseus/data/class_match.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <regex>
#include <utf8proc.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/listing.h"

namespace theseus::data {
namespace {

constexpr size_t kNamesShown = 12;

// Whatever the case of its letters, and however its accents are put together.
std::string folded(const std::string& name) {
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
      static_cast<utf8proc_ssize_t>(name.size()), &made,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD));
  const std::string result =
      size < 0 ? lower(name)
               : std::string(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
  std::free(made);
  return result;
}

// "The_Big  cat" is "bigcat". A name that is nothing but an article stays.
std::string plain(const std::string& name) {
  static const std::regex kGap("[\\s_-]+"), kArticle("^ ?(a|an|the) (?=[^ ])");
  auto words = std::regex_replace(folded(name), kGap, " ");
  words = std::regex_replace(words, kArticle, "");
  std::erase(words, ' ');
  return words;
}

// Places by name; empty where two of the names are the same.
std::map<std::string, int64_t> places_by_name(
    const std::vector<std::string>& names, std::string (*form)(const std::string&)) {
  std::map<std::string, int64_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!places.emplace(form(names[i]), static_cast<int64_t>(i)).second) {
      return {};
    }
  }
  return places;
}

// Returns the position of each of `names` in `others`. The result is empty when a name is missing there or could stand
// for more than one of them.
std::vector<int64_t> found_by_name(
    const std::vector<std::string>& others,
    const std::vector<std::string>& names,
    std::string (*form)(const std::string&)) {
  const auto places = places_by_name(others, form), own = places_by_name(names, form);
  std::vector<int64_t> found;
  for (const auto& name : names) {
    const auto place = places.find(form(name));
    if (place == places.end() || own.empty()) {
      return {};
    }
    found.push_back(place->second);
  }
  return found;
}

bool says_nothing(const std::vector<std::string>& names) {
  static const std::regex kNumber("(label|class)?[ _-]?[0-9]+", std::regex::icase);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return std::regex_match(name, kNumber);
  });
}

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "without names" : printable(joined(names, kNamesShown), 600);
}

std::string words_of(const std::string& whose, const std::vector<std::string>& names) {
  return names.empty() ? whose + " has no names for its classes"
                       : "the classes of " + whose + " are called " + listed(names);
}

std::vector<int64_t> as_they_stand(size_t count) {
  std::vector<int64_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

}  // namespace

std::vector<int64_t> match_classes(
    const Classes& classes, const std::vector<std::string>& names, std::string& note) {
  require(
      std::ssize(names) == classes.count, classes.whose, " has ", classes.count, " classes and ",
      classes.theirs, " ", names.size(), ": ", listed(classes.names), "; ", listed(names),
      classes.otherwise);
  if (classes.names == names) {  // also where a name occurs twice
    return as_they_stand(names.size());
  }
  auto found = found_by_name(classes.names, names, [](const std::string& name) { return name; });
  found = found.empty() ? found_by_name(classes.names, names, plain) : found;
  if (!found.empty()) {
    if (!std::is_sorted(found.begin(), found.end())) {
      note = c10::str(
          "the classes of ", classes.theirs, " stand in another order than those of ",
          classes.whose, "; they were paired by their names: ", listed(classes.names));
    }
    return found;
  }
  require(
      says_nothing(classes.names) || says_nothing(names), "the classes of ", classes.whose, " are ",
      listed(classes.names), " and those of ", classes.theirs, " ", listed(names),
      ": these are not the same classes", classes.otherwise);
  note = c10::str(
      says_nothing(classes.names) ? words_of(classes.whose, classes.names)
                                  : words_of(classes.theirs, names),
      ": classes were paired by their numbers, class 0 with class 0 and so on (",
      says_nothing(classes.names) ? classes.theirs + ": " + listed(names)
                                  : classes.whose + ": " + listed(classes.names),
      ")");
  return as_they_stand(names.size());
}

std::string number_as(const Classes& classes, Examples& examples) {
  if (examples.labels.empty()) {
    return {};
  }
  if (examples.classes.empty()) {
    return c10::str(
        "the labels of ", classes.theirs, " are numbers: label i was taken for class i of ",
        classes.whose,
        classes.names.empty() ? ", which has no names either" : " (" + listed(classes.names) + ")");
  }
  std::string note;
  const auto places = match_classes(classes, examples.classes, note);
  auto names = examples.classes;
  for (size_t i = 0; i < places.size(); ++i) {
    names[static_cast<size_t>(places[i])] = examples.classes[i];
  }
  examples.classes = names;
  for (auto& label : examples.labels) {
    label = places.at(static_cast<size_t>(label));
  }
  return note;
}

}  // namespace theseus::data
