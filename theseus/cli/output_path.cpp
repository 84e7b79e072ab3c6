#include "theseus/cli/output_path.h"

#include <unistd.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/checkpoint.h"

namespace theseus::cli {
namespace {

namespace fs = std::filesystem;

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

void check_writable(const std::string& out) {
  std::error_code ignored;
  const fs::path path(out);
  require(path.has_filename() && out != "-", "--out: '", out, "' names no file");
  const auto directory = directory_of(path);
  require(
      fs::is_directory(directory, ignored), "--out: there is no directory ", directory.string());
  require(
      ::access(directory.c_str(), W_OK) == 0, "--out: no right to write in ", directory.string());
  const auto status = fs::status(path, ignored);
  require(!fs::is_directory(status), "--out: ", out, " is a directory; name a file in it");
  require(
      !fs::exists(status) || fs::is_regular_file(status), "--out: ", out, " is not a regular file");
  remove_abandoned(path);
}

void check_nothing_lost(
    const std::string& out,
    const std::vector<fs::path>& needed,
    const std::vector<fs::path>& model_directories) {
  std::error_code ignored;
  const fs::path path(out);
  for (const auto& file : needed) {
    require(
        file.empty() || !fs::equivalent(path, file, ignored), "--out is ", file.string(),
        ", which is needed");
  }
  const bool taken_for_weights = checkpoint::is_known_weights_name(path.filename().string());
  const bool replaces = fs::exists(path, ignored) && path.extension() != ".safetensors";
  for (const auto& model : model_directories) {
    const auto kept = fs::is_directory(model, ignored) ? model : directory_of(model);
    const bool inside = !model.empty() && fs::equivalent(directory_of(path), kept, ignored);
    require(
        !inside || (!taken_for_weights && !replaces), "--out: ", out, " would change the model in ",
        kept.string());
  }
}

}  // namespace theseus::cli
