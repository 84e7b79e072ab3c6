#include "theseus/output/class_names.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "theseus/base/json.h"
#include "theseus/output/config_file.h"
#include "theseus/output/model_card.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kClasses = "<class>";  // the space of a head's outputs

}  // namespace

std::vector<std::string> class_names_in(const fs::path& directory, int64_t count) {
  std::error_code ignored;
  const auto file = directory / "config.json";
  if (!fs::is_regular_file(file, ignored)) {
    return {};
  }
  const auto config = Json::parse_file(file);
  std::vector<std::string> names;
  if (config.has("id2label")) {
    const auto labels = config.object("id2label");
    for (int64_t i = 0; i < count && labels.has(std::to_string(i)); ++i) {
      const auto& name = labels.raw().at(std::to_string(i));
      names.push_back(name.is_string() ? name.get<std::string>() : name.dump());
    }
  } else {
    names = config.texts("label_names");
  }
  return static_cast<int64_t>(names.size()) == count ? names : std::vector<std::string>();
}

void set_class_names(ordered_json& config, const std::vector<std::string>& names, bool timm) {
  if (timm) {
    config["label_names"] = names;
    return;
  }
  ordered_json labels = ordered_json::object(), places = ordered_json::object();
  for (size_t i = 0; i < names.size(); ++i) {
    labels[std::to_string(i)] = names[i];
    places[names[i]] = i;
  }
  config["id2label"] = labels;
  config["label2id"] = places;
  config.erase("num_labels");
}

int64_t carried_classes(const std::vector<transport::Disposition>& plan) {
  for (const auto& row : plan) {
    const auto& axes = row.target->axes;
    const auto axis = std::find(axes.begin(), axes.end(), kClasses);
    if (row.carried && axis != axes.end()) {
      return row.target->shape[static_cast<size_t>(axis - axes.begin())];
    }
  }
  return 0;
}

std::vector<std::string> keep_class_names(
    const JobOptions& options,
    const Opened& opened,
    const std::vector<transport::Disposition>& plan,
    const std::vector<std::string>& beside,
    const fs::path& directory) {
  auto names = beside;
  if (const auto count = carried_classes(plan); count > 0) {
    std::error_code ignored;
    names = class_names_in(
        fs::is_directory(options.tuned, ignored) ? options.tuned : options.tuned.parent_path(),
        count);
    if (names.empty()) {
      return {
          "the tuned model does not name the classes of the head that is carried: the output's "
          "config "
          "has the target's names, which may be others"};
    }
  }
  if (!names.empty()) {
    const bool timm = library_of(opened.target.location().family) == "timm";
    edit_config(opened.target, directory, [&](ordered_json& config) {
      set_class_names(config, names, timm);
    });
  }
  return {};
}

}  // namespace theseus::output
