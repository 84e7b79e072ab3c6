#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace theseus::cli {

// From now on a signal to end removes files that are half-written, says the words below and ends the process.
// A signal that the process already ignores stays ignored, as nohup and scripts with background jobs expect.
void catch_interrupts();

// Empty: nothing is said.
void say_when_interrupted(const std::string& words);

// Of a job that writes these directories by way of output::WorkDirectory: says what work of it is kept, and where. When all of
// them are there the job is done, and is not interrupted any more.
void say_what_is_kept(const std::vector<std::filesystem::path>& outs);

}  // namespace theseus::cli
