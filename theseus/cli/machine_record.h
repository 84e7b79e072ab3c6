#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace theseus::cli {

// What `theseus doctor` says: what was found on this machine, what its environment says and who said it, how fast
// products are, and what is wrong with it. Measures for a fraction of a second.
nlohmann::ordered_json machine_record();

// The same for people.
std::string machine_text(const nlohmann::ordered_json& record);

}  // namespace theseus::cli
