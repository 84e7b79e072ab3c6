#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/data/examples.h"

namespace theseus::data {

// Texts of a table with a record each: any fields, of which label or labels is the label, a number or a class
// name. PATH as in find_split_files. Class names come from classnames.txt, classes.txt or NAME.json beside
// the table, or else from the labels of all its splits. Throws InputError when only some have a label.
Examples open_text_table(
    const std::filesystem::path& path, const std::string& split, const std::string& ending);

// Whether the first record of the table at PATH (of its first split) has all these fields.
bool table_has(
    const std::filesystem::path& path,
    const std::vector<std::string>& endings,
    const std::vector<std::string>& fields);

}  // namespace theseus::data
