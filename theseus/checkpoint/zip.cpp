// The layout, from the end of the file (APPNOTE.TXT 4.3):
//   local header + name + extra + bytes        for each entry
//   central header + name + extra + comment    for each entry
//   [zip64 end record + zip64 locator]         always there in what PyTorch writes
//   end record + comment
#include "theseus/checkpoint/zip.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::checkpoint {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr uint64_t kLocalSize = 30;
constexpr uint64_t kCentralSize = 46;
constexpr uint64_t kEndSize = 22;
constexpr uint64_t kEnd64Size = 56;
constexpr uint64_t kLocatorSize = 20;
constexpr uint64_t kLongestComment = 0xffff;
constexpr uint64_t kIn64 = 0xffffffff;  // "see the zip64 field"
constexpr uint16_t kExtra64 = 1;

// Little-endian integers at checked positions.
struct Reader {
  std::span<const std::byte> file;
  const std::string& origin;

  std::span<const std::byte> part(uint64_t position, uint64_t size) const {
    require(
        position <= file.size() && size <= file.size() - position, origin, ": damaged zip: bytes ",
        position, " to ", position, " + ", size, " are past the end of the file (", file.size(),
        " bytes)");
    return file.subspan(position, size);
  }
  uint64_t integer(uint64_t position, uint64_t size) const {
    const auto bytes = part(position, size);
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) {
      value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
    }
    return value;
  }
  uint64_t u16(uint64_t position) const { return integer(position, 2); }
  uint64_t u32(uint64_t position) const { return integer(position, 4); }
  uint64_t u64(uint64_t position) const { return integer(position, 8); }
  std::string_view text(uint64_t position, uint64_t size) const {
    return as_text(part(position, size));
  }
};

struct Directory {
  uint64_t entries = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct Located {
  std::string_view name;
  uint64_t size = 0;
  uint64_t local = 0;  // position of the local header
  uint64_t begin = 0;  // position of the bytes
  bool compressed = false;
};

uint64_t find_end(const Reader& reader) {
  const uint64_t size = reader.file.size();
  const uint64_t lowest = size > kEndSize + kLongestComment ? size - kEndSize - kLongestComment : 0;
  for (uint64_t position = size < kEndSize ? 0 : size - kEndSize + 1; position-- > lowest;) {
    if (reader.u32(position) == kEnd && reader.u16(position + 20) == size - position - kEndSize) {
      return position;
    }
  }
  throw InputError(c10::str(
      reader.origin, ": damaged zip: no end record in ", size,
      " bytes (is the file truncated, or still being downloaded?)"));
}

Directory read_directory64(const Reader& reader, uint64_t locator) {
  const uint64_t end64 = reader.u64(locator + 8);
  require(
      end64 <= locator && locator - end64 >= kEnd64Size && reader.u32(end64) == kEnd64,
      reader.origin, ": damaged zip: no zip64 end record at byte ", end64);
  const uint64_t begin = reader.u64(end64 + 48);
  const uint64_t size = reader.u64(end64 + 40);
  require(
      begin <= end64 && size <= end64 - begin, reader.origin,
      ": damaged zip: the central directory (", size, " bytes at ", begin, ") leaves the file");
  return {reader.u64(end64 + 32), begin, begin + size};
}

Directory read_directory(const Reader& reader) {
  const uint64_t end = find_end(reader);
  Directory directory;
  directory.entries = reader.u16(end + 10);
  directory.begin = reader.u32(end + 16);
  const uint64_t size = reader.u32(end + 12);
  directory.end = directory.begin + size;
  if (end >= kLocatorSize && reader.u32(end - kLocatorSize) == kLocator64) {
    directory = read_directory64(reader, end - kLocatorSize);
  }
  require(
      directory.end <= end, reader.origin, ": damaged zip: the central directory (bytes ",
      directory.begin, " to ", directory.end, ") leaves the file");
  require(
      directory.entries <= (directory.end - directory.begin) / kCentralSize, reader.origin,
      ": damaged zip: ", directory.entries, " entries cannot fit a directory of ",
      directory.end - directory.begin, " bytes");
  return directory;
}

// Size, stored size and position of the local header, in the order of the zip64 extra field.
using Fields = std::array<uint64_t, 3>;

// Replaces the saturated fields by the values of a zip64 extra field's content.
void widen(const Reader& reader, uint64_t position, uint64_t size, Fields& fields) {
  for (uint64_t& field : fields) {
    if (field == kIn64) {
      require(size >= 8, reader.origin, ": damaged zip: a zip64 field is too short");
      field = reader.u64(position);
      position += 8;
      size -= 8;
    }
  }
}

void read_extra(const Reader& reader, uint64_t position, uint64_t end, Fields& fields) {
  while (end - position >= 4) {
    const uint64_t id = reader.u16(position);
    const uint64_t size = reader.u16(position + 2);
    position += 4;
    require(
        size <= end - position, reader.origin, ": damaged zip: an extra field leaves its entry");
    if (id == kExtra64) {
      widen(reader, position, size, fields);
      return;
    }
    position += size;
  }
}

// The bytes begin after the local header's own name and extra field: PyTorch pads the extra field
// there, and only there, to align the bytes.
uint64_t find_bytes(const Reader& reader, const Located& entry, const std::string& where) {
  const uint64_t local = entry.local;
  require(
      reader.part(local, kLocalSize).size() == kLocalSize && reader.u32(local) == kLocalHeader,
      where, " has no local header at byte ", local);
  const uint64_t name_size = reader.u16(local + 26);
  require(
      reader.text(local + kLocalSize, name_size) == entry.name, where,
      " is called otherwise in its local header");
  return local + kLocalSize + name_size + reader.u16(local + 28);
}

// Reads the central header at `position` and moves there to the next one.
Located read_entry(const Reader& reader, const Directory& directory, uint64_t& position) {
  require(
      directory.end - position >= kCentralSize && reader.u32(position) == kCentralHeader,
      reader.origin, ": damaged zip: no central header at byte ", position);
  const uint64_t name_size = reader.u16(position + 28);
  const uint64_t extra_size = reader.u16(position + 30);
  const uint64_t next =
      position + kCentralSize + name_size + extra_size + reader.u16(position + 32);
  require(next <= directory.end, reader.origin, ": damaged zip: an entry leaves the directory");
  Located entry;
  entry.name = reader.text(position + kCentralSize, name_size);
  const auto where = c10::str(reader.origin, ": zip entry '", printable(entry.name), "'");
  const uint64_t extra = position + kCentralSize + name_size;
  Fields fields = {reader.u32(position + 24), reader.u32(position + 20), reader.u32(position + 42)};
  read_extra(reader, extra, extra + extra_size, fields);
  const auto [size, stored, local] = fields;
  entry.local = local;
  require((reader.u16(position + 8) & 1) == 0, where, " is encrypted");
  entry.compressed = reader.u16(position + 10) != 0;
  require(
      entry.compressed || stored == size, where, " is stored in ", stored, " bytes but ", size,
      " bytes long");
  entry.size = stored;
  entry.begin = find_bytes(reader, entry, where);
  require(
      entry.begin <= directory.begin && entry.size <= directory.begin - entry.begin, where, " (",
      entry.size, " bytes at ", entry.begin, ") runs into the central directory at ",
      directory.begin);
  position = next;
  return entry;
}

void check_overlap(std::vector<Located>& entries, const std::string& origin) {
  std::sort(entries.begin(), entries.end(), [](const Located& left, const Located& right) {
    return std::pair(left.local, left.name) < std::pair(right.local, right.name);
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    const auto& before = entries[i - 1];
    require(
        before.begin + before.size <= entries[i].local, origin, ": zip entries '",
        printable(before.name), "' and '", printable(entries[i].name), "' overlap");
  }
}

}  // namespace

bool begins_like_zip(std::span<const std::byte> file) {
  const std::string_view begin(
      reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 4));
  return begin == "PK\x03\x04" || begin == "PK\x05\x06";
}

std::vector<ZipEntry> read_zip(std::span<const std::byte> file, const std::string& origin) {
  const Reader reader{file, origin};
  const Directory directory = read_directory(reader);
  std::vector<Located> located;
  located.reserve(directory.entries);
  uint64_t position = directory.begin;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    located.push_back(read_entry(reader, directory, position));
  }
  check_overlap(located, origin);
  std::vector<ZipEntry> entries;
  entries.reserve(located.size());
  for (const Located& entry : located) {
    entries.push_back(
        {std::string(entry.name), file.subspan(entry.begin, entry.size), entry.compressed});
  }
  std::sort(entries.begin(), entries.end(), [](const ZipEntry& left, const ZipEntry& right) {
    return left.name < right.name;
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    require(
        entries[i].name != entries[i - 1].name, origin, ": the zip entry '",
        printable(entries[i].name), "' appears twice");
  }
  return entries;
}

void require_stored(const std::vector<ZipEntry>& entries, const std::string& origin) {
  for (const ZipEntry& entry : entries) {
    require(
        !entry.compressed, origin, ": zip entry '", printable(entry.name),
        "' is compressed: torch.save stores entries as they are; save the file again with "
        "torch.save instead of packing it with another tool");
  }
}

}  // namespace theseus::checkpoint
