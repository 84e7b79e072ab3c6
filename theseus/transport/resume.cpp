#include "theseus/transport/resume.h"

#include <limits>

#include <ATen/ATen.h>

#include "theseus/base/bring.h"
#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/checked.h"

namespace theseus::transport {
namespace {

namespace fs = std::filesystem;

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

void append(NamedTensors& tensors, const std::string& prefix, const stats::Moments& moments) {
  for (const auto& [space, pair] : moments) {
    for (const auto& [name, tensor] : pair.tensors()) {
      tensors.emplace_back(prefix + space + "/" + name, tensor.to(at::kCPU));
    }
  }
}

void append(NamedTensors& tensors, const std::string& prefix, const stats::WalkState& state) {
  for (const auto& [part, streams] :
       {std::pair("source", &state.source), std::pair("source_kept", &state.source_kept),
        std::pair("target", &state.target), std::pair("target_kept", &state.target_kept)}) {
    for (const auto& [name, tensor] : *streams) {
      if (tensor.defined()) {
        tensors.emplace_back(c10::str(prefix, part, "/", name), tensor.to(at::kCPU).contiguous());
      }
    }
  }
}

// "a/b/c" -> a, b, c
std::vector<std::string> words(const std::string& path) {
  std::vector<std::string> result;
  for (size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    result.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

std::map<std::string, at::Tensor>& part_of(stats::WalkState& state, const std::string& word) {
  return word == "source"        ? state.source
         : word == "source_kept" ? state.source_kept
         : word == "target"      ? state.target
                                 : state.target_kept;
}

fs::path schedule_file(const fs::path& directory) {
  return directory / "schedule.safetensors";
}

}  // namespace

Schedule agreed_schedule(const fs::path& directory, const Schedule& now, int64_t batches) {
  const auto path = schedule_file(directory);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    require(
        !fs::exists(directory / kWalkFile, ignored),
        "the unfinished work is damaged: ", path.string(), " is gone; --fresh starts anew");
    std::vector<int64_t> numbers;
    for (const auto& [first, last] : now.groups) {
      numbers.insert(numbers.end(), {first, last});
    }
    checkpoint::write_checked(
        path, {{"groups", at::tensor(numbers, at::kLong)},
               {"spill", at::tensor(int64_t{now.spill}, at::kLong)},
               {"batches", at::tensor(batches, at::kLong)}});
    return now;
  }
  const auto saved = checkpoint::open_checked(path);
  require(
      saved.find("batches") != nullptr && saved.tensor("batches").item<int64_t>() == batches,
      "the unfinished work ", path.string(),
      " walked the examples in other batches; --fresh starts anew");
  const auto numbers = saved.tensor("groups").view({-1, 2});
  Schedule schedule{.spill = saved.tensor("spill").item<int64_t>() != 0, .cost = now.cost};
  for (int64_t i = 0; i < numbers.size(0); ++i) {
    schedule.groups.emplace_back(numbers[i][0].item<int64_t>(), numbers[i][1].item<int64_t>());
  }
  return schedule;
}

void write_moments(const fs::path& path, const std::map<int64_t, stats::Moments>& moments) {
  NamedTensors tensors;
  for (const auto& [stage, found] : moments) {
    append(tensors, c10::str(stage, "/"), found);
  }
  checkpoint::write_checked(path, tensors);
}

std::map<int64_t, stats::Moments> read_moments(const fs::path& path) {
  const auto saved = checkpoint::open_checked(path);
  std::map<std::pair<int64_t, std::string>, std::map<std::string, at::Tensor>> pairs;
  for (const auto& info : saved.tensors()) {
    const auto name = words(info.name);
    pairs[{std::stoll(name.at(0)), name.at(1)}][name.at(2)] = saved.tensor(info.name);
  }
  std::map<int64_t, stats::Moments> moments;
  for (const auto& [key, tensors] : pairs) {
    moments[key.first][key.second] = stats::PairMoments::from(tensors);
  }
  return moments;
}

WalkMemory::WalkMemory(
    fs::path directory,
    int64_t batches,
    bool spill,
    double seconds,
    bool shared,
    c10::Device device)
    : directory_(std::move(directory)),
      spill_(spill),
      seconds_(seconds),
      shared_(shared),
      device_(device),
      states_(static_cast<size_t>(batches)) {
  std::error_code ignored;
  require(
      !shared_ || !spill_ || fs::is_directory(directory_, ignored),
      "the hidden states go to files, and a process does not see ", directory_.string(),
      ": put --out where all machines see it, or give more --memory");
}

fs::path WalkMemory::state_file(int64_t first, int64_t batch) const {
  return directory_ / c10::str("states-", first, "-", batch, ".safetensors");
}

bool WalkMemory::load(
    Position& position, std::map<int64_t, stats::Moments>& moments, stats::Moments& outer) {
  if (!is_saved()) {
    return false;
  }
  const auto saved = checkpoint::open_checked(file());
  std::map<std::pair<int64_t, std::string>, std::map<std::string, at::Tensor>> pairs;
  for (const auto& info : saved.tensors()) {
    const auto path = words(info.name);
    const auto tensor = saved.tensor(info.name);
    if (path[0] == "position") {
      position = {tensor[0].item<int64_t>(), tensor[1].item<int64_t>()};
    } else if (path[0] == "state") {
      part_of(states_.at(std::stoull(path[1])), path[2])[path[3]] = bring(tensor, device_);
    } else {
      pairs[{path[0] == "outer" ? -1 : std::stoll(path[1]), path[2]}][path[3]] = tensor;
    }
  }
  for (const auto& [key, tensors] : pairs) {
    auto& where = key.first < 0 ? outer : moments[key.first];
    where[key.second] = stats::PairMoments::from(tensors);
  }
  return true;
}

bool WalkMemory::is_due(const Position& position) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - saved_;
  const bool group_ends = position.batch == 0;
  return ((spill_ || shared_) && group_ends) || (!shared_ && passed.count() >= seconds_);
}

void WalkMemory::save(
    const Position& position,
    const std::map<int64_t, stats::Moments>& moments,
    const stats::Moments& outer) {
  const auto start = std::chrono::steady_clock::now();
  NamedTensors tensors = {{"position", at::tensor({position.first, position.batch}, at::kLong)}};
  for (const auto& [stage, found] : moments) {
    append(tensors, c10::str("moments/", stage, "/"), found);
  }
  append(tensors, "outer/0/", outer);
  for (size_t batch = 0; batch < states_.size() && !spill_ && !shared_; ++batch) {
    append(tensors, c10::str("state/", batch, "/"), states_[batch]);
  }
  checkpoint::write_checked(file(), tensors);
  if (const auto mark = directory_ / kWalkSavedFile; !fs::exists(mark)) {
    AtomicFile(mark).commit();
  }
  if (spill_) {
    forget_before(position.first);  // not sooner: until now an earlier position was the saved one
  }
  // Saving must stay a small part of the time: the longer it takes, the longer until the next.
  saved_ = std::chrono::steady_clock::now();
  seconds_ = std::max(seconds_, 20 * std::chrono::duration<double>(saved_ - start).count());
}

bool WalkMemory::is_saved() const {
  std::error_code ignored;
  return fs::exists(file(), ignored);
}

void WalkMemory::clear() {
  std::error_code ignored;
  fs::remove(directory_ / kWalkSavedFile, ignored);
  fs::remove(file(), ignored);
  fs::remove(schedule_file(directory_), ignored);
  forget_before(std::numeric_limits<int64_t>::max());
}

stats::WalkState WalkMemory::take(int64_t first, int64_t batch) {
  if (first == 0) {
    return {};
  }
  if (!spill_) {
    return states_[static_cast<size_t>(batch)];
  }
  // Files are read lazily, and may go: states are copies.
  const auto saved = checkpoint::open_checked(state_file(first, batch));
  stats::WalkState state;
  for (const auto& info : saved.tensors()) {
    const auto path = words(info.name);
    part_of(state, path[0])[path[1]] = bring(saved.tensor(info.name), device_);
  }
  return state;
}

void WalkMemory::put(int64_t first, int64_t batch, stats::WalkState state) {
  if (!spill_) {
    states_[static_cast<size_t>(batch)] = std::move(state);
    return;
  }
  NamedTensors tensors;
  append(tensors, "", state);
  checkpoint::write_checked(state_file(first, batch), tensors);
}

void WalkMemory::forget_before(int64_t first) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("states-") && std::stoll(name.substr(7)) < first) {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace theseus::transport
