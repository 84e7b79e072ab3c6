#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/made_files.h"
#include "theseus/output/identity.h"
#include "theseus/output/work_contents.h"

namespace theseus::output {

// Throws InputError when `out` is there and is no empty directory; when `fresh`, where it holds anything but what
// its record lists.
void require_free(const std::filesystem::path& out, bool fresh);

// The directory OUT.partial of an output.
std::filesystem::path work_path(const std::filesystem::path& out);

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
  // Runs a part of the job, with the same care for a NumericError. After every other one the work is worth keeping.
  template <typename Body>
  decltype(auto) attempt(Body&& body) {
    try {
      return std::forward<Body>(body)();
    } catch (const NumericError&) {
      give_up();
      throw;
    }
  }
  // Runs a part of the job after which the work is of use, whatever happens: the message of an E says where it is.
  template <typename E, typename Body>
  decltype(auto) keeping(Body&& body) {
    try {
      return std::forward<Body>(body)();
    } catch (const E& error) {
      throw E(error.what() + kept_words());
    }
  }
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
  void require_same(const nlohmann::ordered_json& before) const;
  void give_up() { kept_ = resumed_ = false; }
  bool holds_work() const;
  std::string kept_words() const;
  void require_whole();
  void forget_work() noexcept;
  void clear() noexcept;

  std::filesystem::path out_, path_, staged_;
  Identity identity_;
  nlohmann::ordered_json job_;                // the identity, once it is known
  nlohmann::ordered_json device_;             // of this process
  nlohmann::ordered_json threads_, devices_;  // of all processes that worked on it
  std::string went_on_at_;
  std::optional<MadeFiles> made_;  // in `staged` and in other folders
  int lock_ = -1;
  bool fresh_ = false;
  bool resumed_ = false;
  bool kept_ = false;
};

}  // namespace theseus::output
