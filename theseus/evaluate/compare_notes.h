#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace theseus::evaluate {

// What the cell of a setting names classes by, in record["prompts"][setting]; nothing where prompts play no
// part.
void add_prompts_of(
    const std::string& setting, const nlohmann::ordered_json& cell, nlohmann::ordered_json& record);

// What was said while cells were measured: setting and words, and by which methods.
using CellNotes = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;
// Once each; with its methods where these are not all of the table's `rows`.
void add_cell_notes(const CellNotes& said, size_t rows, std::vector<std::string>& notes);

// The prompts of `record` in words, and the cells of the rows of `table` in which the target alone was the
// best of what was chosen from.
void add_notes(
    const nlohmann::ordered_json& record,
    const nlohmann::ordered_json& table,
    std::vector<std::string>& notes);

}  // namespace theseus::evaluate
