#include "theseus/data/records.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/base/text.h"
#include "theseus/data/listing.h"
#include "theseus/data/utf8.h"

namespace theseus::data {
namespace {

struct Row {
  std::vector<std::string> fields;
  size_t end = 0;     // where the next row begins
  int64_t lines = 1;  // that it takes up
  bool closed = true;
};

// A quoted field that begins after its quote; doubled quotes are one. Leaves `at` behind the last quote.
std::string quoted_field(std::string_view text, size_t& at, Row& row) {
  std::string field;
  while (at < text.size()) {
    const char character = text[at++];
    if (character == '"') {
      if (at >= text.size() || text[at] != '"') {
        return field;
      }
      ++at;
    }
    row.lines += character == '\n' ? 1 : 0;
    field.push_back(character);
  }
  row.closed = false;
  return field;
}

Row read_row(std::string_view text, size_t at, RecordForm form) {
  const char separator = form == RecordForm::kTabs ? '\t' : form == RecordForm::kCommas ? ',' : ';';
  Row row;
  while (true) {
    std::string field;
    if (form != RecordForm::kTabs && at < text.size() && text[at] == '"') {
      field = quoted_field(text, ++at, row);
    }
    const auto begin = at;
    while (at < text.size() && text[at] != separator && text[at] != '\n') {
      ++at;
    }
    const bool last = at >= text.size() || text[at] == '\n';
    auto rest = text.substr(begin, at - begin);
    if (last && rest.ends_with('\r')) {
      rest.remove_suffix(1);
    }
    row.fields.push_back(field.append(rest));
    row.end = std::min(at + 1, text.size());
    if (last) {
      return row;
    }
    ++at;
  }
}

bool is_blank(const Row& row) {
  return row.fields.size() == 1 && trimmed(row.fields[0]).empty();
}

}  // namespace

Records::Records(
    const std::filesystem::path& path, RecordForm form, std::vector<std::string> columns)
    : file_(std::make_shared<const MappedFile>(path)), form_(form), columns_(std::move(columns)) {
  text_ = utf8_text(as_text(file_->bytes()), path.string());
  if (form == RecordForm::kJsonLines) {
    find_lines();
  } else {
    find_rows(columns_.empty());
  }
  require(!places_.empty(), path.string(), " has no records");
}

void Records::find_lines() {
  int64_t line = 1;
  for (size_t begin = 0; begin < text_.size(); ++line) {
    const auto end = std::min(text_.find('\n', begin), text_.size());
    if (!trimmed(text_.substr(begin, end - begin)).empty()) {
      places_.push_back({begin, end, line});
    }
    begin = end + 1;
  }
}

void Records::find_rows(bool header) {
  int64_t line = 1;
  for (size_t begin = 0; begin < text_.size();) {
    auto row = read_row(text_, begin, form_);
    const auto where = c10::str(path().string(), ":", line);
    require(row.closed, where, ": a quote is opened and never closed");
    if (!is_blank(row) && header) {
      header = false;
      const std::set<std::string> distinct(row.fields.begin(), row.fields.end());
      require(
          distinct.size() == row.fields.size(), where,
          ": the header names a column twice: ", printable(joined(row.fields, 30), 400));
      columns_ = std::move(row.fields);
    } else if (!is_blank(row)) {
      require(
          row.fields.size() == columns_.size(), where, ": ", row.fields.size(),
          " fields, and the table has ", columns_.size(), " columns (",
          printable(joined(columns_, 20), 300), ")");
      places_.push_back({begin, row.end, line});
    }
    line += row.lines;
    begin = row.end;
  }
}

std::string Records::name(int64_t record) const {
  return c10::str(path().string(), ":", places_.at(record).line);
}

Fields Records::fields(int64_t record) const {
  const auto& place = places_.at(record);
  const auto text = text_.substr(place.begin, place.end - place.begin);
  Fields fields;
  if (form_ != RecordForm::kJsonLines) {
    auto row = read_row(text, 0, form_);
    for (size_t i = 0; i < columns_.size(); ++i) {
      fields[columns_[i]] = std::move(row.fields[i]);
    }
    return fields;
  }
  const auto json = Json::parse(text, name(record));
  for (const auto& [key, value] : json.raw().items()) {
    if (!value.is_null()) {
      fields[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  return fields;
}

std::vector<std::string> Records::field_names() const {
  if (form_ != RecordForm::kJsonLines) {
    return columns_;
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : fields(0)) {
    names.push_back(name);
  }
  return names;
}

RecordForm form_of(const std::filesystem::path& path) {
  const auto ending = lower(path.extension().string());
  require(
      ending == ".jsonl" || ending == ".csv" || ending == ".tsv", path.string(),
      ": expected a name that ends in .jsonl, .csv or .tsv");
  return ending == ".jsonl" ? RecordForm::kJsonLines
         : ending == ".csv" ? RecordForm::kCommas
                            : RecordForm::kTabs;
}

std::vector<std::string> peek_fields(const std::filesystem::path& path) {
  constexpr size_t kLongest = size_t{1} << 20;
  const auto ending = lower(path.extension().string());
  if (!is_file(path) || (ending != ".jsonl" && ending != ".csv" && ending != ".tsv")) {
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  std::string line;
  for (char next = 0; line.size() < kLongest && file.get(next) && next != '\n';) {
    line.push_back(next);
  }
  if (line.size() == kLongest) {
    return {};  // a part of it says nothing; whoever opens it by name reads all
  }
  const auto text = utf8_text(line, path.string());
  if (ending != ".jsonl") {
    return read_row(text, 0, form_of(path)).fields;
  }
  return trimmed(text).empty() ? std::vector<std::string>()
                               : Json::parse(text, path.string() + ":1").keys();
}

}  // namespace theseus::data
