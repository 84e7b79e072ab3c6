#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace theseus::output {

// Where a job that goes on begins: without any of these it starts over, whatever else is there.
constexpr const char* kRouteFile = "route.json";                 // blocks matched by similarity
constexpr const char* kWalkFile = "walk.safetensors";            // see transport::WalkMemory
constexpr const char* kSolvedFile = "solved";                    // every map is there
constexpr const char* kGradientsFile = "gradients.safetensors";  // see transport::Aligner
constexpr const char* kSignsFile = "signs.safetensors";          // see SignMask
constexpr const char* kTrainingFile = "training.safetensors";    // see train::save
constexpr const char* kImitatedFile = "imitated.safetensors";    // see imitate_job
constexpr const char* kWorkFiles[] = {kRouteFile, kWalkFile,     kSolvedFile,  kGradientsFile,
                                      kSignsFile, kTrainingFile, kImitatedFile};

// Path, size and time of those of `paths` that are files, sorted: for the identity of a job, so that
// another file in the place of an input is noticed.
nlohmann::ordered_json stamps_of(std::vector<std::filesystem::path> paths);
// What lies in a directory, not below it; nothing of what is no directory.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);

// The directory OUT.partial, where a long job keeps what it has until OUT can appear whole. One
// process at a time. What an earlier process left is kept when it was the same job.
class WorkDirectory {
 public:
  // `job`: JSON that is equal for runs that give the same result. `fresh`: start over. Throws
  // InputError when OUT exists (unless `fresh` and it is an output of ours), when another process
  // works on it, when the unfinished work is another job's, or when it cannot be made.
  WorkDirectory(const std::filesystem::path& out, const std::string& job, bool fresh);
  // Unfinished work stays, unless nothing was done: a command that was refused can be corrected.
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Where the output is put together; empty at the start.
  const std::filesystem::path& staged() const { return staged_; }
  bool resumed() const { return resumed_; }
  // Every check is passed: from here on, what is put into `path` is worth keeping.
  void keep() { kept_ = true; }
  // Makes `staged` the output and removes everything else.
  void finish();

 private:
  explicit WorkDirectory(const std::filesystem::path& out);
  void take_lock();
  bool holds_work() const;

  std::filesystem::path out_, path_, staged_;
  int lock_ = -1;
  bool resumed_ = false;
  bool kept_ = false;
};

}  // namespace theseus::output
