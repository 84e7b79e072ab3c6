#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace theseus::checkpoint {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> bytes;  // part of the archive's own bytes, as they stand there
  bool compressed = false;
};

// Whether `file` begins with a zip's first local header, or is an empty zip.
bool begins_like_zip(std::span<const std::byte> file);

// The entries of a zip archive, sorted by name. Reads the central directory and each entry's local
// header; the entries' bytes are not touched, and their checksums not verified.
//
// No zip library, because libraries hand out decoded streams. Tensors are used where they stand in
// the mapped file, so what is needed are the offsets of stored entries; and since nothing is ever
// decompressed (see require_stored), an archive cannot be larger inside than outside.
//
// On return names are unique and the entries neither overlap nor leave the file. Throws InputError,
// which names `origin` and the entry, for anything else.
std::vector<ZipEntry> read_zip(std::span<const std::byte> file, const std::string& origin);

// Throws InputError naming the first entry that is compressed. Apart from read_zip, so that an
// archive of another kind can be called by its name first.
void require_stored(const std::vector<ZipEntry>& entries, const std::string& origin);

}  // namespace theseus::checkpoint
