#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "theseus/base/file.h"

namespace theseus::data {

struct TarMember {
  std::string name;
  size_t offset = 0;  // of its bytes in the file
  size_t size = 0;
};

// Where the regular files of an uncompressed tar lie, in their order, so that they can be read from the
// mapped file at random. Knows ustar, GNU's long names and pax. Throws InputError when a header is damaged,
// the file is cut short, or a member is sparse.
std::vector<TarMember> index_tar(const MappedFile& file);

}  // namespace theseus::data
