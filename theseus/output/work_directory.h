#pragma once

#include <filesystem>
#include <functional>
#include <set>
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

// What lies in a directory, not below it; nothing of what is no directory.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);

// Whether the option's value says where an input lies. What lies there is known by its hash.
bool is_input(const std::string& option, const std::string& value);

// The options, as they were given, that decide a result: not those that say how fast it comes, nor
// where inputs lie.
nlohmann::ordered_json deciding_options(const nlohmann::ordered_json& words);

// JSON that is equal for runs that give the same result: {"version", "options", ..., "inputs": {WHAT: HASH}}. Only its
// "device", which is noted, may be another: it rounds otherwise.
// Finding it reads the inputs.
using Identity = std::function<nlohmann::ordered_json()>;

// Throws InputError when `out` is there and is no empty directory; when `fresh`, where it holds anything but what
// its record lists.
void require_free(const std::filesystem::path& out, bool fresh);

// The directory OUT.partial of an output.
std::filesystem::path work_path(const std::filesystem::path& out);

// What lies in a directory of unfinished work and is not of any job, by its name from there.
std::vector<std::string> not_of_work(const std::filesystem::path& directory);

// The record of an output that the same job has made, with `there_before`; null where nothing is at `out`, or it
// shall be made anew. What is left of the job's work is removed (then the record has `removed`, its path). Throws InputError when
// another job made what is there, or when it has changed since.
nlohmann::ordered_json find_finished(
    const std::filesystem::path& out, const Identity& identity, bool fresh);

// The directory OUT.partial, where a long job keeps what it has until OUT can appear whole. One
// process at a time. What an earlier process left is kept when it was the same job.
class WorkDirectory {
 public:
  // `fresh`: start over. The identity is asked for where there is unfinished work. Throws InputError as
  // require_free() does, when another process works on it, when the unfinished work is another job's, or when it cannot be made.
  WorkDirectory(const std::filesystem::path& out, Identity identity, bool fresh);
  // Unfinished work stays, unless nothing was done: a command that was refused can be corrected.
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Where the output is put together; empty at the start.
  const std::filesystem::path& staged() const { return staged_; }
  bool resumed() const { return resumed_; }
  // Notes whose work this is. Before that nothing in it can be gone on with.
  void identify();
  // Every check is passed: from here on, what is put into `path` is worth keeping.
  void keep() { kept_ = true; }
  // Runs what checks the result. When that throws, the work is removed: whoever goes on with it comes to the same
  // end, and the corrected command is another one.
  void check_result(const std::function<void()>& check);
  // Names that will be copied into the output: a process that finds them there, half done, knows whose they are.
  void expect(const std::set<std::string>& names);
  // How far the work was that this process goes on with, in words.
  void went_on_at(const std::string& where) { went_on_at_ = where; }
  // Makes `staged` the output, with the record as its file `name`, and removes everything else. It
  // adds "job" and "written" to the record before it writes the file, and "resumed" afterwards, for the caller alone.
  void finish(const std::string& name, nlohmann::ordered_json& record);

 private:
  explicit WorkDirectory(const std::filesystem::path& out);
  friend nlohmann::ordered_json find_finished(
      const std::filesystem::path& out, const Identity& identity, bool fresh);
  void take_lock();
  void begin();
  void find_job();
  bool holds_work() const;
  void clear() noexcept;

  std::filesystem::path out_, path_, staged_;
  Identity identity_;
  nlohmann::ordered_json job_;                // the identity, once it is known
  nlohmann::ordered_json device_;             // of this process
  nlohmann::ordered_json threads_, devices_;  // of all processes that worked on it
  std::string went_on_at_;
  int lock_ = -1;
  bool fresh_ = false;
  bool resumed_ = false;
  bool kept_ = false;
};

}  // namespace theseus::output
