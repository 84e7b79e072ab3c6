#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/transport/carry.h"

namespace theseus::output {

// The carried parameters of a target, each group of stages in a file of its own, read one parameter
// at a time.
class CarriedFiles {
 public:
  explicit CarriedFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  const std::filesystem::path& directory() const { return directory_; }

  // Writes the group of stages `first` to `last` - 1; `rows` goes with it as JSON, and so do the hashes of files below the directory that were written
  // `beside` it. The disk has it after sync(), before which a job that the machine
  // takes down begins anew.
  void write(
      int64_t first,
      int64_t last,
      const std::map<std::string, transport::Carried>& carried,
      const nlohmann::ordered_json& rows,
      const std::vector<std::filesystem::path>& beside = {});
  void sync();
  // Removes the groups that begin with stage `first` or later.
  void drop_from(int64_t first);
  // The stage after all that this object wrote or left.
  int64_t end() const { return end_; }
  // Opens the groups of all stages before `last`. Throws InputError, which names the file, when one is gone or not
  // as it was written.
  void open(int64_t last);
  // Opens the group that begins with stage `first`; returns the stage after it.
  int64_t open_group(int64_t first);

  const nlohmann::ordered_json& rows() const { return rows_; }
  bool contains(const std::string& parameter) const { return files_.contains(parameter); }
  size_t size() const { return files_.size(); }
  transport::Carried read(const std::string& parameter) const;

 private:
  std::filesystem::path file(int64_t first, const char* extension) const;
  std::set<int64_t> groups() const;  // that have such a file

  std::filesystem::path directory_;
  std::map<std::string, std::shared_ptr<const checkpoint::Checkpoint>> files_;  // by parameter
  std::vector<std::filesystem::path> unsynced_;
  int64_t end_ = 0;
  mutable std::string last_;  // the parameter whose delta was read last
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

}  // namespace theseus::output
