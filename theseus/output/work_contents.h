#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::output {

// What lies in the directory of unfinished work, OUT.partial, and whose it is.

// Where a job that goes on begins: without any of these it starts over, whatever else is there.
constexpr const char* kRouteFile = "route.json";       // blocks matched by similarity
constexpr const char* kWalkFile = "walk.safetensors";  // see transport::WalkMemory
constexpr const char* kWalkSavedFile = "walk.saved";   // says that kWalkFile must be there
constexpr const char* kSolvedFile = "solved";          // every map is there
constexpr const char* kGradientsFile = "gradients.safetensors";  // see transport::Aligner
constexpr const char* kSignsFile = "signs.safetensors";          // see SignMask
constexpr const char* kTrainingFile = "training.safetensors";    // see train::save
constexpr const char* kImitatedFile = "imitated.safetensors";    // see imitate_job
constexpr const char* kWorkFiles[] = {kWalkSavedFile, kRouteFile, kWalkFile,     kSolvedFile,
                                      kGradientsFile, kSignsFile, kTrainingFile, kImitatedFile};
// Those of them that are written only after kJobFile, which says whose they are.
constexpr const char* kOwnedFiles[] = {
    kWalkSavedFile, kWalkFile, kSolvedFile, kTrainingFile, kImitatedFile};
constexpr const char* kJobFile = "job.json";

constexpr const char* kMadeFile = "made.txt";  // what was made below its folders: see MadeFiles
constexpr const char* kLockFile = "lock";
constexpr std::string_view kLockText = "theseus\n";  // tells our directory from others

// What lies in a directory, not below it; nothing of what is no directory.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);

// Whether a job gives a name like this to what it puts into its directory.
bool is_of_work(const std::filesystem::path& path);

// What lies in a directory of unfinished work and is not of any job, by its name from there: all of it where nothing
// says that the directory is one. Of what is in its folders, ours is what the list of made files holds. `fresh`: where
// the lock is damaged, kJobFile says it, too.
std::vector<std::string> not_of_work(const std::filesystem::path& directory, bool fresh = false);

// Which file there is damaged or gone, so that what is ours may pass for a stranger's; in words that end a sentence, or
// empty.
std::string damaged_list(const std::filesystem::path& directory);

}  // namespace theseus::output
