#include "theseus/output/carried_files.h"

#include <vector>

#include <ATen/ATen.h>

#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/checkpoint/write.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDelta = "|delta";
constexpr const char* kUp = "|up";
constexpr const char* kDown = "|down";
constexpr const char* kScale = "|scale";
constexpr const char* kNorms = "|norms";
constexpr const char* kAgreement = "|agreement";

}  // namespace

void CarriedFiles::write(
    int64_t first,
    const std::map<std::string, transport::Carried>& carried,
    const nlohmann::ordered_json& rows) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, one] : carried) {
    if (one.factors) {
      tensors.emplace_back(name + kUp, one.factors->up.contiguous());
      tensors.emplace_back(name + kDown, one.factors->down.contiguous());
      tensors.emplace_back(name + kScale, at::tensor(one.factors->scale, at::kDouble));
    } else {
      tensors.emplace_back(name + kDelta, one.delta.contiguous());
    }
    tensors.emplace_back(
        name + kNorms, at::tensor({one.source_norm, one.target_norm}, at::kDouble));
    if (one.agreement) {
      tensors.emplace_back(name + kAgreement, at::tensor(*one.agreement, at::kDouble));
    }
  }
  if (!tensors.empty()) {
    checkpoint::write_safetensors(file(first, ".safetensors"), tensors, /*synced=*/false);
    unsynced_.push_back(file(first, ".safetensors"));
  }
  AtomicFile about(file(first, ".json"));
  about.append(rows.dump());
  about.commit_unsynced();
  unsynced_.push_back(file(first, ".json"));
}

void CarriedFiles::sync() {
  for (const auto& path : unsynced_) {
    sync_file(path);
  }
  unsynced_.clear();
}

fs::path CarriedFiles::file(int64_t first, const char* extension) const {
  return directory_ / c10::str("carried-", first, extension);
}

std::set<int64_t> CarriedFiles::groups() const {
  std::set<int64_t> found;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("carried-") && entry.path().extension() == ".json") {
      found.insert(std::stoll(name.substr(8)));
    }
  }
  return found;
}

void CarriedFiles::drop_from(int64_t first) const {
  for (const auto group : groups()) {
    if (group >= first) {
      fs::remove(file(group, ".json"));
      fs::remove(file(group, ".safetensors"));
    }
  }
}

void CarriedFiles::open() {
  for (const auto first : groups()) {
    open(first);
  }
}

void CarriedFiles::open(int64_t first) {
  for (const auto& row :
       nlohmann::ordered_json::parse(read_text_file(file(first, ".json"), 1 << 30))) {
    rows_.push_back(row);
  }
  const auto tensors = file(first, ".safetensors");
  if (!fs::exists(tensors)) {
    return;
  }
  const auto opened =
      std::make_shared<const checkpoint::Checkpoint>(checkpoint::Checkpoint::open(tensors));
  for (const auto& info : opened->tensors()) {
    files_[info.name.substr(0, info.name.rfind('|'))] = opened;
  }
}

transport::Carried CarriedFiles::read(const std::string& parameter) const {
  const auto& file = *files_.at(parameter);
  if (!last_.empty() && last_ != parameter) {  // its pages come again when they are looked at again
    files_.at(last_)->forget(last_ + kDelta);
    last_.clear();
  }
  transport::Carried result;
  if (file.find(parameter + kDelta) != nullptr) {
    result.delta = file.tensor(parameter + kDelta);
    last_ = parameter;
  } else {
    result.factors = update::LowRank{
        .up = file.tensor(parameter + kUp),
        .down = file.tensor(parameter + kDown),
        .scale = file.tensor(parameter + kScale).item<double>()};
  }
  const auto norms = file.tensor(parameter + kNorms);
  result.source_norm = norms[0].item<double>();
  result.target_norm = norms[1].item<double>();
  if (file.find(parameter + kAgreement) != nullptr) {
    result.agreement = file.tensor(parameter + kAgreement).item<double>();
  }
  return result;
}

}  // namespace theseus::output
