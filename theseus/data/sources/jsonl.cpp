#include "theseus/data/text_table.h"

namespace theseus::data::sources {
namespace {

bool recognises(const std::filesystem::path& path) {
  return table_has(path, {".jsonl"}, {"text"});
}

Examples open(const std::filesystem::path& path, const std::string& split) {
  return open_text_table(path, split, ".jsonl");
}

}  // namespace

const Source& jsonl() {
  static const Source source = {
      .summary =
          "texts as JSON lines: FILE.jsonl, DIR/{train,val,test}.jsonl, "
          "NAME.{train,val,test}.jsonl",
      .recognises = recognises,
      .open = open,
      .general = true};
  return source;
}

}  // namespace theseus::data::sources
