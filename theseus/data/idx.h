#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/data/examples.h"

namespace theseus::data {

// MNIST's four files, {train,t10k}-{images-idx3,labels-idx1}-ubyte, also with a dot in place of the last
// hyphen but one, also .gz; in the folder, in raw/ or in NAME/raw/. Throws InputError.
Examples open_idx(
    const std::filesystem::path& path,
    const std::string& asked,
    const std::vector<std::string>& classes,
    const std::vector<std::string>& templates);

// Whether the files are there and a folder on the way to them is called one of `names`, in small letters:
// the files of all data sets of this kind have the same names.
bool recognises_idx(const std::filesystem::path& path, const std::vector<std::string>& names);

}  // namespace theseus::data
