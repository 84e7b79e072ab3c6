#pragma once

#include <string>

namespace theseus::data {

// Why no layout takes `words` (a PATH or NAME:PATH), from what is there, and what to try: for an error.
std::string why_unrecognised(const std::string& words);

}  // namespace theseus::data
