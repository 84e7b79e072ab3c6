#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace theseus::tests {

// An entry of a zip archive, right or wrong: what is not set is what it should be.
struct RawZipEntry {
  std::string name;
  std::string bytes;
  uint16_t flags = 0;
  uint16_t method = 0;
  std::optional<uint64_t> size = {};      // declared, uncompressed
  std::optional<uint64_t> stored = {};    // declared
  std::optional<uint64_t> position = {};  // of the local header
  std::optional<std::string> local_name = {};
  std::string local_extra = {};
};

// The archive, with 64-bit sizes and positions where `zip64`.
std::string raw_zip(const std::vector<RawZipEntry>& entries, bool zip64);

}  // namespace theseus::tests
