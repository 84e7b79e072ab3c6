#include "theseus/output/write_model.h"

#include <cmath>
#include <memory>
#include <system_error>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/staged_safetensors.h"
#include "theseus/output/add_delta.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

double share(double part_squared, double whole_squared) {
  return whole_squared > 0 ? std::sqrt(part_squared / whole_squared) : 0;
}

void check_directory(const fs::path& directory) {
  std::error_code error;
  const fs::directory_iterator files(directory, error);
  require(!error, "cannot write into ", directory.string(), ": ", error.message());
  for (const auto& file : files) {
    require(
        !checkpoint::is_known_weights_name(file.path().filename().string()), directory.string(),
        " already holds ", file.path().filename().string(), "; write to an empty directory");
  }
}

}  // namespace

ModelWriter::ModelWriter(const model::Model& target, const fs::path& directory, double alpha)
    : target_(target), directory_(directory), alpha_(alpha) {
  require(std::isfinite(alpha), "alpha is ", alpha, "; expected a finite number");
  check_directory(directory);
  layout_ = layout_of(target);
  for (const auto& parameter : target.architecture().parameters) {
    owners_[parameter.stored] = parameter.tensor;
  }
  for (const auto& tie : target.architecture().ties) {
    if (!tie.stored.empty()) {
      owners_[tie.stored] = tie.tied_to;
    }
  }
  files_.emplace(directory, layout_.files, layout_.entries);
  for (const auto* entry : files_->entries()) {
    if (const auto owner = owners_.find(entry->name); owner != owners_.end()) {
      copies_[owner->second].push_back(entry);
    }
  }
}

void ModelWriter::write(const std::set<std::string>& tensors, const Deltas& deltas) {
  with_context("writing a model to " + directory_.string(), [&] {
    for (const auto& tensor : tensors) {
      if (auto found = copies_.extract(tensor)) {
        write(found.mapped(), deltas);
      }
    }
  });
}

void ModelWriter::write(const std::vector<const checkpoint::Entry*>& copies, const Deltas& deltas) {
  const auto owner = owners_.find(copies.front()->name);
  const auto delta = owner == owners_.end() || alpha_ == 0 ? at::Tensor() : deltas(owner->second);
  at::Tensor changed;
  for (const auto* entry : copies) {
    if (delta.defined() && !changed.defined()) {
      changed = sum(owner->second, *entry, delta);
    }
    files_->put(*entry, changed.defined() ? changed : target_.checkpoint().tensor(entry->name));
    target_.checkpoint().forget(entry->name);
  }
}

at::Tensor ModelWriter::sum(
    const std::string& tensor, const checkpoint::Entry& entry, const at::Tensor& delta) {
  const auto base = target_.checkpoint().tensor(entry.name);
  require<InternalError>(
      delta.sizes() == base.sizes(), "the delta of ", tensor, " has shape ", delta.sizes(),
      "; the tensor has ", base.sizes());
  auto sum =
      with_context("adding to " + entry.name, [&] { return add_delta(base, delta, alpha_); });
  require<NumericError>(
      sum.finite, entry.name, " would hold NaN or infinity after ", alpha_,
      " times its delta is added: ",
      std::isfinite(sum.norm_squared) ? "too large for " : "the delta is not finite; stored as ",
      base.scalar_type());
  changes_[&entry] = {tensor, sum.norm_squared, sum.lost_squared};
  return std::move(sum.value);
}

WrittenModel ModelWriter::finish(const Deltas& deltas, const Watch& watch) {
  return with_context("writing a model to " + directory_.string(), [&] {
    const int64_t all = layout_.bytes();
    int64_t done = 0;
    const auto tell = [&] {
      if (watch) {
        watch(done, all);
      }
    };
    WrittenModel written;
    double norm_squared = 0, lost_squared = 0;
    for (const auto* entry : files_->entries()) {
      tell();
      done += checkpoint::entry_bytes(*entry);
      const auto owner = owners_.find(entry->name);
      if (owner == owners_.end()) {
        write({entry}, deltas);
      } else if (auto found = copies_.extract(owner->second)) {
        write(found.mapped(), deltas);
      }
      // Summed in this order whatever was written first.
      if (const auto change = changes_.find(entry); change != changes_.end()) {
        const auto& [tensor, norm, lost] = change->second;
        norm_squared += norm;
        lost_squared += lost;
        written.changes.push_back(
            {.tensor = tensor, .norm = std::sqrt(norm), .rounding_loss = share(lost, norm)});
      }
    }
    tell();
    written.files = files_->commit();
    written.norm = std::sqrt(norm_squared);
    written.rounding_loss = share(lost_squared, norm_squared);
    return written;
  });
}

WrittenModel write_model(
    const model::Model& target,
    const fs::path& directory,
    const Deltas& deltas,
    double alpha,
    const Watch& watch) {
  auto writer = with_context("writing a model to " + directory.string(), [&] {
    return std::make_unique<ModelWriter>(target, directory, alpha);
  });
  return writer->finish(deltas, watch);
}

}  // namespace theseus::output
