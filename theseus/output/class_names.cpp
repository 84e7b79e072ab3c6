#include "theseus/output/class_names.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "theseus/model/class_names.h"
#include "theseus/output/config_file.h"
#include "theseus/output/model_card.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kClasses = "<class>";  // the space of a head's outputs

}  // namespace

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
    const auto folder =
        fs::is_directory(options.tuned, ignored) ? options.tuned : options.tuned.parent_path();
    names = model::class_names(folder / "config.json", count);
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
