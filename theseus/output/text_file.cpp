#include "theseus/output/text_file.h"

#include <nlohmann/json.hpp>

#include "theseus/base/file.h"

namespace theseus::output {

void write_text(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.append(text);
  file.commit();
}

void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json) {
  write_text(path, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace theseus::output
