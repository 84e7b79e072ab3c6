#include "theseus/output/named_base.h"

#include <vector>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/update/adapter.h"

namespace theseus::output {

namespace fs = std::filesystem;

NamedBase named_base(const fs::path& tuned) {
  std::error_code ignored;
  require(fs::exists(tuned, ignored), "cannot open ", tuned.string(), ": it does not exist");
  const auto folder = fs::is_directory(tuned, ignored) ? tuned : tuned.parent_path();
  const bool adapter = update::is_adapter(folder);
  const auto file = folder / (adapter ? "adapter_config.json" : "config.json");
  const char* key = adapter ? "base_model_name_or_path" : "_name_or_path";
  const auto name =
      fs::is_regular_file(file, ignored) ? Json::parse_file(file).text(key, "") : std::string();
  require(
      !name.empty(), "--source is required: ", tuned.string(), " names no base of its own (", key,
      " in ", file.string(), ")");
  for (const auto& path : {fs::path(name), folder / name}) {
    if (fs::is_directory(path, ignored) && !fs::equivalent(path, folder, ignored)) {
      return {
          .path = path,
          .note = c10::str(
              "the source is ", path.string(), ", which ", file.string(), " names (", key, ")")};
    }
  }
  throw InputError(c10::str(
      "--source is required: ", file.string(), " names the base '", name, "' (", key,
      "), which is no other directory here; download it, and give its directory as --source"));
}

}  // namespace theseus::output
