#include <algorithm>
#include <memory>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/examples.h"
#include "theseus/data/listing.h"
#include "theseus/data/splits.h"
#include "theseus/data/utf8.h"

namespace theseus::data::sources {
namespace {

namespace fs = std::filesystem;

bool recognises(const fs::path& path) {
  return is_file(path) && lower(path.extension().string()) == ".txt";
}

Examples open(const fs::path& path, const std::string& asked) {
  const auto files = split_files(path, {".txt"});
  Examples examples;
  examples.split = choose_among(files, asked, path);
  const auto file = std::make_shared<const MappedFile>(files.at(examples.split));
  const auto text = utf8_text(as_text(file->bytes()), file->path().string());
  std::vector<std::string_view> lines;
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = trimmed(text.substr(begin, end - begin));
    if (!line.empty()) {
      lines.push_back(line);
      examples.names.push_back(c10::str(file->path().string(), ":", number));
    }
    begin = end + 1;
  }
  require(!lines.empty(), file->path().string(), " has no text");
  examples.text = [file, lines = std::move(lines)](int64_t index) {
    return Fields{{"text", std::string(lines.at(index))}};
  };
  return examples;
}

}  // namespace

const Source& lines() {
  static const Source source = {
      .summary = "one text a line, without labels: FILE.txt, DIR/{train,val,test}.txt",
      .recognises = recognises,
      .open = open,
      .general = true};
  return source;
}

}  // namespace theseus::data::sources
