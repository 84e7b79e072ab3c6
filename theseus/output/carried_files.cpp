#include "theseus/output/carried_files.h"

#include <vector>

#include <ATen/ATen.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/checked.h"
#include "theseus/output/text_file.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kDelta = "|delta";
constexpr const char* kUp = "|up";
constexpr const char* kDown = "|down";
constexpr const char* kScale = "|scale";
constexpr const char* kNorms = "|norms";
constexpr const char* kAgreement = "|agreement";

}  // namespace

void CarriedFiles::write(
    int64_t first,
    int64_t last,
    const std::map<std::string, transport::Carried>& carried,
    const nlohmann::ordered_json& rows,
    const std::vector<fs::path>& beside) {
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
  ordered_json checksum;  // null: nothing was carried
  if (!tensors.empty()) {
    checksum = checkpoint::write_checked(file(first, ".safetensors"), tensors, /*synced=*/false);
    unsynced_.push_back(file(first, ".safetensors"));
  }
  auto hashes = ordered_json::object();
  for (const auto& path : beside) {
    hashes[path.lexically_relative(directory_).generic_string()] = hash_of_file(path);
  }
  write_checked_json(
      file(first, ".json"),
      {{"last", last}, {"tensors", checksum}, {"rows", rows}, {"beside", hashes}},
      /*synced=*/false);
  unsynced_.push_back(file(first, ".json"));
  end_ = last;
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

void CarriedFiles::drop_from(int64_t first) {
  end_ = first;
  for (const auto group : groups()) {
    if (group >= first) {
      fs::remove(file(group, ".json"));
      fs::remove(file(group, ".safetensors"));
    }
  }
}

void CarriedFiles::open(int64_t last) {
  int64_t first = 0;
  while (first < last) {
    first = open_group(first);
  }
  require(
      first == last, "the unfinished work is damaged: ", directory_.string(), " holds stage ",
      first, " and was to hold those before stage ", last + 1, "; --fresh starts anew");
}

int64_t CarriedFiles::open_group(int64_t first) {
  const auto path = file(first, ".json");
  std::error_code ignored;
  require(
      fs::is_regular_file(path, ignored), "the unfinished work is damaged: ", path.string(),
      " is gone; --fresh starts anew");
  const auto about = read_checked_json(path);
  const auto last = about.value("last", int64_t{0});
  require(
      last > first, "the unfinished work is damaged: ", path.string(),
      " does not say which stages it is of; --fresh starts anew");
  for (const auto& row : about.at("rows")) {
    rows_.push_back(row);
  }
  for (const auto& [name, hash] : about.at("beside").items()) {
    const auto other = directory_ / name;
    require(
        fs::is_regular_file(other, ignored) && hash == hash_of_file(other),
        "the unfinished work is damaged: ", other.string(),
        " is not there as it was written; --fresh starts anew");
  }
  if (const auto& checksum = about.at("tensors"); !checksum.is_null()) {
    const auto opened = std::make_shared<const checkpoint::Checkpoint>(
        checkpoint::open_checked(file(first, ".safetensors"), checksum.get<std::string>()));
    for (const auto& info : opened->tensors()) {
      files_[info.name.substr(0, info.name.rfind('|'))] = opened;
    }
  }
  return last;
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
