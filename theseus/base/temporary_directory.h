#pragma once

#include <filesystem>
#include <string>

namespace theseus {

// A directory of our own where the system keeps temporary files; it is gone with this object.
class TemporaryDirectory {
 public:
  // `stem` begins its name. What a killed process left under such a name goes. Throws InputError when it cannot be
  // made.
  explicit TemporaryDirectory(const std::string& stem);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace theseus
