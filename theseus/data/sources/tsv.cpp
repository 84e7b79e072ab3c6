#include "theseus/data/text_table.h"

namespace theseus::data::sources {
namespace {

bool recognises(const std::filesystem::path& path) {
  return table_has(path, {".tsv"}, {"text"});
}

Examples open(const std::filesystem::path& path, const std::string& split) {
  return open_text_table(path, split, ".tsv");
}

}  // namespace

const Source& tsv() {
  static const Source source = {
      .summary =
          "texts as a table with a header line: FILE.tsv, DIR/{train,val,test}.tsv, "
          "NAME.{train,val,test}.tsv",
      .recognises = recognises,
      .open = open,
      .general = true};
  return source;
}

}  // namespace theseus::data::sources
