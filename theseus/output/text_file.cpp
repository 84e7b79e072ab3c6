#include "theseus/output/text_file.h"

#include <nlohmann/json.hpp>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/file.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kLongestChecked = int64_t{1} << 30;

std::string with_checksum(const ordered_json& json) {
  const auto text = json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return R"({"checksum":")" + hash_of_text(text) + R"(","content":)" + text + "}\n";
}

}  // namespace

void write_text(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.append(text);
  file.commit();
}

void write_json(const std::filesystem::path& path, const ordered_json& json) {
  write_text(path, json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void write_checked_json(const std::filesystem::path& path, const ordered_json& json, bool synced) {
  AtomicFile file(path);
  file.append(with_checksum(json));
  synced ? file.commit() : file.commit_unsynced();
}

ordered_json read_checked_json(const std::filesystem::path& path) {
  const auto text = read_text_file(path, kLongestChecked);
  const auto found = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  require(
      found.is_object() && found.contains("content") && text == with_checksum(found.at("content")),
      "the unfinished work is damaged: the content of ", path.string(),
      " is not what its checksum says; --fresh starts anew");
  return found.at("content");
}

}  // namespace theseus::output
