#include "theseus/output/space.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "theseus/base/error.h"
#include "theseus/base/units.h"
#include "theseus/output/layout.h"
#include "theseus/output/side_files.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  while (path.has_parent_path() && path != path.parent_path() && !fs::exists(path, ignored)) {
    path = path.parent_path();
  }
  return fs::exists(path, ignored) ? path : fs::path(".");
}

}  // namespace

void require_space(const fs::path& directory, int64_t bytes, std::string_view what) {
  std::error_code error;
  const auto space = fs::space(nearest_existing(directory), error);
  require(
      !error, "cannot tell how much space is left for ", directory.string(), ": ", error.message());
  const auto available = static_cast<int64_t>(
      std::min<uintmax_t>(space.available, std::numeric_limits<int64_t>::max()));
  require(
      bytes <= available, what, " needs ", bytes_text(bytes), "; the disk of ", directory.string(),
      " has ", bytes_text(available), " left");
}

int64_t bytes_of_output(const model::Model& target, OutputDtype dtype) {
  constexpr size_t kPerTensor = 160;  // dtype, shape and offsets in a header, quotes in an index
  const auto layout =
      with_dtype(layout_of(target), dtype == OutputDtype::kAuto ? OutputDtype::kFloat32 : dtype);
  int64_t sum = layout.bytes() + bytes_of_side_files(target);
  for (const auto& entry : layout.entries) {
    const auto& file = layout.files.file_of.at(entry.name);
    sum += static_cast<int64_t>(2 * entry.name.size() + file.size() + kPerTensor);
  }
  return sum;
}

}  // namespace theseus::output
