#include "theseus/train/save.h"

#include <fstream>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/checked.h"
#include "theseus/output/work_directory.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view kLeaf = "leaf/";
constexpr const char* kSteps = "steps";
constexpr const char* kBest = "best";      // [step, value, loss]
constexpr const char* kLosses = "losses";  // the characters of a hash
constexpr int64_t kLongestLosses = int64_t{1} << 30;

void put_back(const checkpoint::Checkpoint& file, const std::string& name, const at::Tensor& leaf) {
  const c10::NoGradGuard no_gradients;
  const auto* found = file.find(name);
  require(
      found != nullptr && found->shape == leaf.sizes().vec(),
      "the unfinished work is damaged: ", name,
      " is not in it as it should be; --fresh starts anew");
  leaf.copy_(file.tensor(name));
}

}  // namespace

void save(
    const fs::path& directory,
    const gradient::Trainable& trainable,
    const AdamW& optimiser,
    const Saved& rest) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, leaf] : trainable.leaves()) {
    tensors.emplace_back(std::string(kLeaf) + name, leaf.detach().cpu());
  }
  for (const auto& [name, tensor] : optimiser.moments()) {
    tensors.emplace_back(name, tensor.cpu());
  }
  tensors.emplace_back(kSteps, at::full({1}, optimiser.steps(), at::kLong));
  const auto& losses = rest.losses;
  tensors.emplace_back(
      kLosses, at::tensor(std::vector<uint8_t>(losses.begin(), losses.end()), at::kByte));
  if (const auto& best = rest.best) {
    tensors.emplace_back(
        kBest, at::tensor(
                   std::vector<double>{static_cast<double>(best->step), best->value, best->loss},
                   at::kDouble));
  }
  checkpoint::write_checked(directory / output::kTrainingFile, tensors);
}

Saved restore(const fs::path& directory, gradient::Trainable& trainable, AdamW& optimiser) {
  return with_context("going on with unfinished work", [&] {
    const auto file = checkpoint::open_checked(directory / output::kTrainingFile);
    for (const auto& [name, leaf] : trainable.leaves()) {
      put_back(file, std::string(kLeaf) + name, leaf);
    }
    Tensors moments;
    for (const auto& info : file.tensors()) {
      if (info.name.starts_with("first/") || info.name.starts_with("second/")) {
        const auto leaf = trainable.leaves().find(info.name.substr(info.name.find('/') + 1));
        require(leaf != trainable.leaves().end(), "nothing has the moments ", info.name);
        moments[info.name] = at::empty_like(leaf->second.detach());
        put_back(file, info.name, moments[info.name]);
      }
    }
    optimiser.restore(file.tensor(kSteps).item<int64_t>(), moments);
    const auto hash = file.tensor(kLosses).contiguous();
    Saved saved{.losses = {static_cast<const char*>(hash.data_ptr()), hash.nbytes()}};
    if (file.find(kBest) != nullptr) {
      const auto best = file.tensor(kBest);
      saved.best = Best{
          .step = static_cast<int64_t>(best[0].item<double>()),
          .value = best[1].item<double>(),
          .loss = best[2].item<double>()};
    }
    return saved;
  });
}

int64_t saved_steps(const fs::path& directory) {
  std::error_code ignored;
  const auto file = directory / output::kTrainingFile;
  return fs::exists(file, ignored) ? checkpoint::open_checked(file).tensor(kSteps).item<int64_t>()
                                   : 0;
}

void save_leaves(const fs::path& file, const gradient::Trainable& trainable) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, leaf] : trainable.leaves()) {
    tensors.emplace_back(name, leaf.detach().cpu());
  }
  checkpoint::write_checked(file, tensors);
}

void restore_leaves(const fs::path& file, gradient::Trainable& trainable) {
  const auto saved = checkpoint::open_checked(file);
  for (const auto& [name, leaf] : trainable.leaves()) {
    put_back(saved, name, leaf);
  }
}

Losses::Losses(const fs::path& file, int64_t last, const std::string& hash) : file_(file) {
  std::error_code ignored;
  std::string kept;
  if (last > 0 && fs::exists(file, ignored)) {
    std::istringstream text(read_text_file(file, kLongestLosses));
    for (std::string line; std::getline(text, line);) {
      const auto object = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!object.is_object() || object.value("step", last + 1) > last) {
        break;  // cut off, or later than what was saved
      }
      lines_.push_back(object);
      kept += line + "\n";
    }
  }
  hash_.add(kept);
  require(
      hash.empty() || hash == hash_.text(), "the unfinished work is damaged: the content of ",
      file.string(), " is not what its checksum says; --fresh starts anew");
  AtomicFile fresh(file);
  fresh.append(kept);
  fresh.commit();
}

void Losses::add(const ordered_json& line) {
  lines_.push_back(line);
  const auto text = line.dump() + "\n";
  hash_.add(text);
  std::ofstream out(file_, std::ios::app);
  out << text << std::flush;
  require(static_cast<bool>(out), "cannot write ", file_.string());
}

std::string Losses::hash() const {
  sync_file(file_);
  return hash_.text();
}

}  // namespace theseus::train
