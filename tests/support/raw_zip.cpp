#include "tests/support/raw_zip.h"

namespace theseus::tests {
namespace {

std::string number(uint64_t value, size_t bytes) {
  std::string result;
  for (size_t i = 0; i < bytes; ++i) {
    result.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return result;
}

std::string local_header(const RawZipEntry& entry) {
  const auto name = entry.local_name.value_or(entry.name);
  return "PK\x03\x04" + number(20, 2) + number(entry.flags, 2) + number(entry.method, 2) +
         number(0, 8) + number(entry.bytes.size(), 4) + number(entry.bytes.size(), 4) +
         number(name.size(), 2) + number(entry.local_extra.size(), 2) + name + entry.local_extra;
}

std::string central_header(const RawZipEntry& entry, uint64_t written_at, bool zip64) {
  const uint64_t size = entry.size.value_or(entry.bytes.size());
  const uint64_t stored = entry.stored.value_or(entry.bytes.size());
  const uint64_t position = entry.position.value_or(written_at);
  const auto extra = zip64 ? number(1, 2) + number(24, 2) + number(size, 8) + number(stored, 8) +
                                 number(position, 8)
                           : std::string();
  const uint64_t saturated = 0xffffffff;
  return "PK\x01\x02" + number(20, 2) + number(20, 2) + number(entry.flags, 2) +
         number(entry.method, 2) + number(0, 8) + number(zip64 ? saturated : stored, 4) +
         number(zip64 ? saturated : size, 4) + number(entry.name.size(), 2) +
         number(extra.size(), 2) + number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) +
         number(zip64 ? saturated : position, 4) + entry.name + extra;
}

}  // namespace

std::string raw_zip(const std::vector<RawZipEntry>& entries, bool zip64) {
  std::string file;
  std::string directory;
  for (const RawZipEntry& entry : entries) {
    directory += central_header(entry, file.size(), zip64);
    file += local_header(entry) + entry.bytes;
  }
  const uint64_t begin = file.size();
  const uint64_t size = directory.size();
  const uint64_t count = entries.size();
  file += directory;
  if (zip64) {
    const uint64_t end64 = file.size();
    file += "PK\x06\x06" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) +
            number(count, 8) + number(count, 8) + number(size, 8) + number(begin, 8);
    file += "PK\x06\x07" + number(0, 4) + number(end64, 8) + number(1, 4);
  }
  return file + "PK\x05\x06" + number(0, 4) + number(zip64 ? 0xffff : count, 2) +
         number(zip64 ? 0xffff : count, 2) + number(zip64 ? 0xffffffff : size, 4) +
         number(zip64 ? 0xffffffff : begin, 4) + number(0, 2);
}

}  // namespace theseus::tests
