#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/base/file.h"
#include "theseus/data/examples.h"

namespace theseus::data {

enum class RecordForm {
  kJsonLines,  // an object a line; numbers, lists and so on become their JSON text, null is no field
  kCommas,     // CSV with "quoted" fields and a header line
  kSemicolons,  // the same with semicolons
  kTabs,        // TSV with a header line; quotes are letters like others
};

// A file of records with named fields. Opening finds where each begins; the fields are read when they are
// asked for, by any number of threads.
class Records {
 public:
  // `columns`: names for a table that has no header line. Throws InputError when the file is empty, a row
  // has more or fewer fields than the header, a column is there twice or a quote is not closed.
  Records(
      const std::filesystem::path& path, RecordForm form, std::vector<std::string> columns = {});

  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  std::string name(int64_t record) const;  // FILE:LINE
  Fields fields(int64_t record) const;     // throws InputError for what is not JSON
  // The first record's; for a table what the header says.
  std::vector<std::string> field_names() const;
  const std::filesystem::path& path() const { return file_->path(); }

 private:
  struct Place {
    size_t begin;
    size_t end;
    int64_t line;
  };
  void find_lines();
  void find_rows(bool header);

  std::shared_ptr<const MappedFile> file_;
  std::string_view text_;
  RecordForm form_;
  std::vector<std::string> columns_;
  std::vector<Place> places_;
};

// By the name's ending: .jsonl, .csv, .tsv. Throws InputError for others.
RecordForm form_of(const std::filesystem::path& path);

// The field names of the file's first record; empty when it is not such a file. Reads only the first line,
// for `recognises`.
std::vector<std::string> peek_fields(const std::filesystem::path& path);

}  // namespace theseus::data
