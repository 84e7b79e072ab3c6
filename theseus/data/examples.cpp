#include "theseus/data/examples.h"

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/listing.h"
#include "theseus/data/part.h"
#include "theseus/data/unrecognised.h"

namespace theseus::data {
namespace {

using SourceRow = Plugin<Source>;

std::vector<const SourceRow*> recognising(const std::filesystem::path& path, bool general) {
  std::vector<const SourceRow*> rows;
  for (const auto& row : all_sources()) {
    const auto& source = *row.object;
    if (source.general == general && source.recognises != nullptr && source.recognises(path)) {
      rows.push_back(&row);
    }
  }
  return rows;
}

std::string name_list(const std::vector<const SourceRow*>& rows) {
  std::vector<std::string> names;
  for (const auto* row : rows) {
    names.emplace_back(row->name);
  }
  return joined(names, names.size());
}

bool is_source(std::string_view name) {
  for (const auto& row : all_sources()) {
    if (row.name == name) {
      return true;
    }
  }
  return false;
}

const SourceRow& recognised(const std::string& words) {
  auto rows = recognising(words, /*general=*/false);
  if (rows.empty()) {
    rows = recognising(words, /*general=*/true);
  }
  if (rows.empty()) {
    throw InputError(why_unrecognised(words));
  }
  require(
      rows.size() == 1, words, ": several sources of data recognise this: ", name_list(rows),
      "; name one, as in ", rows[0]->name, ":", words);
  return *rows[0];
}

// Layouts say what they miss in a folder, and would say the same of one that is not there.
void require_there(const std::string& words, const std::filesystem::path& path, bool named) {
  const auto why = why_unreadable(path);
  require(why.empty(), words, ": ", why);
  require(!named || !is_missing(path), words, ": ", path.string(), " is no file or folder");
}

// Sources promise this; what comes after relies on it.
void check(const Examples& examples) {
  require(examples.size() > 0, "there are no examples");
  require<InternalError>(
      (examples.image == nullptr) != (examples.text == nullptr), "neither images nor texts");
  require<InternalError>(
      examples.labels.empty() || examples.labels.size() == examples.names.size(),
      "as many labels as examples");
}

}  // namespace

Examples open_examples(const std::string& words, const std::string& split) {
  if (const auto part = find_part(split)) {
    return part_of(open_examples(words, part->split), *part);
  }
  require(!words.empty(), "no data named; give NAME:PATH or a PATH");
  const auto colon = words.find(':');
  const bool named = colon != std::string::npos && !is_file(words) && !is_folder(words) &&
                     is_source(std::string_view(words).substr(0, colon));
  const auto path = named ? words.substr(colon + 1) : words;
  require(!path.empty(), "no path after '", words, "'");
  require_there(words, path, named);
  const auto name = named ? words.substr(0, colon) : std::string(recognised(words).name);
  return with_context(c10::str("opening ", name, ":", path), [&] {
    auto examples = find_plugin(all_sources(), "source of data", name).open(path, split);
    examples.source = name;
    check(examples);
    return examples;
  });
}

}  // namespace theseus::data
