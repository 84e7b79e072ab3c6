#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "theseus/data/stored_images.h"

namespace theseus::data {

// Variables of a MATLAB file. All throw InputError when the variable is missing or of another kind.
class MatFile {
 public:
  explicit MatFile(const std::filesystem::path& path);
  ~MatFile();
  MatFile(const MatFile&) = delete;
  MatFile& operator=(const MatFile&) = delete;

  struct ByteArray {
    Bytes values;  // the first axis is the one whose elements are neighbours
    std::vector<int64_t> shape;
  };
  ByteArray bytes(const std::string& variable) const;                 // uint8
  std::vector<int64_t> integers(const std::string& variable) const;   // any kind of number
  std::vector<std::string> texts(const std::string& variable) const;  // a cell array of strings
  bool has(const std::string& variable) const;

  // One field of every element of a struct array.
  std::vector<int64_t> integers(const std::string& variable, const std::string& field) const;
  std::vector<std::string> texts(const std::string& variable, const std::string& field) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace theseus::data
