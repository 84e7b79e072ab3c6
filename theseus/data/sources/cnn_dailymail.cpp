// CNN/DailyMail articles and their highlights; T5's own prompt asks for the summary.

#include "theseus/base/error.h"
#include "theseus/data/records.h"
#include "theseus/data/splits.h"
#include "theseus/data/text_table.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& endings() {
  static const std::vector<std::string> names = {".jsonl", ".csv"};
  return names;
}

bool recognises(const fs::path& path) {
  return table_has(path, endings(), {"article", "highlights"});
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto files = split_files(path, endings());
  Examples examples;
  examples.split = choose_among(files, asked, path);
  const auto& file = files.at(examples.split);
  const auto records = std::make_shared<const Records>(file, form_of(file));
  const auto first = records->fields(0);
  require(
      first.contains("article") && first.contains("highlights"), records->name(0),
      ": expected the fields article and highlights");
  for (int64_t i = 0; i < records->size(); ++i) {
    examples.names.push_back(records->name(i));
  }
  examples.wording = {"summarize: {article}", "", "{highlights}"};
  examples.text = [records](int64_t index) { return records->fields(index); };
  return examples;
}

}  // namespace

const Source& cnn_dailymail() {
  static const Source source = {
      .summary = "CNN/DailyMail: {train,validation,test}.{jsonl,csv} with article and highlights",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
