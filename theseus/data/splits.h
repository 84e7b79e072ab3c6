#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::data {

// "train", "val" or "test" for a word that means it (val: also valid, validation and dev), else "".
std::string split_meant(std::string_view word);

// Which of the splits `there` is to be read when `asked` for one: see Source::open. Throws InputError for a
// word that is no split and for one that is not there; `where` is for the message.
std::string choose_split(
    const std::vector<std::string>& there,
    const std::string& asked,
    const std::filesystem::path& where);

// The files of a table's splits. PATH is one file (its split is in its name, as in sst2.train.jsonl, or it
// has none: ""), a folder with train.ENDING and so on, or what comes before ".train.ENDING". Empty when
// there is nothing of the kind. Throws InputError for two files of one split.
using SplitFiles = std::map<std::string, std::filesystem::path>;
SplitFiles find_split_files(
    const std::filesystem::path& path, const std::vector<std::string>& endings);
SplitFiles split_files(const std::filesystem::path& path, const std::vector<std::string>& endings);
std::string choose_among(
    const SplitFiles& files, const std::string& asked, const std::filesystem::path& where);

}  // namespace theseus::data
