#include "theseus/data/wording.h"

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::data {
namespace {

std::string names_of(const Fields& fields) {
  std::vector<std::string> names;
  for (const auto& [name, value] : fields) {
    names.push_back(printable(name));
  }
  return names.empty() ? "none" : joined(names, 20);
}

const std::string& value_of(
    const std::string& name, const Fields& fields, const std::string* class_name) {
  if (name == "class") {
    require(
        class_name != nullptr,
        "the wording asks for {class}, and these examples have no class names");
    return *class_name;
  }
  const auto found = fields.find(name);
  require(
      found != fields.end(), "the wording asks for the field '", printable(name),
      "', and the example has ", names_of(fields), "; write {{ for a brace that is meant");
  return found->second;
}

}  // namespace

std::string fill(std::string_view pattern, const Fields& fields, const std::string* class_name) {
  std::string result;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char character = pattern[at];
    const bool doubled = at + 1 < pattern.size() && pattern[at + 1] == character;
    if (character != '{' && character != '}') {
      result.push_back(character);
    } else if (doubled) {
      result.push_back(character);
      ++at;
    } else {
      const auto end = pattern.find('}', at);
      require(
          character == '{' && end != std::string_view::npos, "the wording '", printable(pattern),
          "' has a brace without its other half at letter ", at + 1,
          "; write {{ or }} for a brace that is meant");
      result += value_of(std::string(pattern.substr(at + 1, end - at - 1)), fields, class_name);
      at = end;
    }
  }
  return result;
}

Worded fill(const Wording& wording, const Fields& fields, const std::string* class_name) {
  return {
      fill(wording.first, fields, class_name), fill(wording.second, fields, class_name),
      fill(wording.answer, fields, class_name)};
}

Worded worded(const Examples& examples, const Wording& wording, int64_t i) {
  const auto label = examples.labels.empty() ? -1 : examples.labels[static_cast<size_t>(i)];
  const bool named = label >= 0 && label < static_cast<int64_t>(examples.classes.size());
  return with_context("reading " + examples.names[static_cast<size_t>(i)], [&] {
    return fill(
        wording, examples.text(i), named ? &examples.classes[static_cast<size_t>(label)] : nullptr);
  });
}

std::string fill_template(std::string_view words, std::string_view class_name) {
  constexpr std::string_view kPlace = "{c}";
  std::string result;
  size_t at = 0;
  for (size_t place = words.find(kPlace); place != std::string_view::npos;
       place = words.find(kPlace, at)) {
    result.append(words.substr(at, place - at)).append(class_name);
    at = place + kPlace.size();
  }
  require(at > 0, "the template '", printable(words), "' has no {c}, which stands for the class");
  return result.append(words.substr(at));
}

}  // namespace theseus::data
