#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>

namespace theseus {

// The list of what this program has made below a directory: whatever else lies there is somebody else's.
class MadeFiles {
 public:
  // While this lives, note_made() adds the names below the folders of `directory` to `list`, a text file with a name a
  // line that lies in `directory` itself. Throws InputError when it cannot be written.
  MadeFiles(std::filesystem::path directory, std::filesystem::path list);
  ~MadeFiles();
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;

  // The names in such a list, none where there is none.
  static std::set<std::string> read(const std::filesystem::path& list);

 private:
  friend void note_made(const std::filesystem::path& path);
  void add(const std::filesystem::path& path);

  std::filesystem::path directory_, list_;
  std::set<std::string> names_;
};

// To be called before a file or a folder is made, so that a process that is killed in between leaves nothing
// that is not on the list. AtomicFile does it.
void note_made(const std::filesystem::path& path);

}  // namespace theseus
