#include "theseus/output/write_model.h"

#include <cmath>
#include <memory>
#include <system_error>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/staged_safetensors.h"
#include "theseus/model/layers.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

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

// A tensor as it will be stored.
at::Tensor stored_as(const at::Tensor& tensor, const checkpoint::Entry& entry) {
  auto value = tensor.to(entry.dtype);
  require<NumericError>(
      value.is_same(tensor) || model::all_finite(value) || !model::all_finite(tensor), entry.name,
      " holds numbers that are too large for ", entry.dtype);
  return value;
}

}  // namespace

ModelWriter::ModelWriter(
    const model::Model& target, const fs::path& directory, double alpha, ModelLayout layout)
    : target_(target), directory_(directory), alpha_(alpha), layout_(std::move(layout)) {
  require(std::isfinite(alpha), "alpha is ", alpha, "; expected a finite number");
  check_directory(directory);
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
    files_->put(
        *entry,
        stored_as(changed.defined() ? changed : target_.checkpoint().tensor(entry->name), *entry));
    target_.checkpoint().forget(entry->name);
  }
}

at::Tensor ModelWriter::sum(
    const std::string& tensor, const checkpoint::Entry& entry, const at::Tensor& delta) {
  const auto base = target_.checkpoint().tensor(entry.name);
  require<InternalError>(
      delta.sizes() == base.sizes(), "the delta of ", tensor, " has shape ", delta.sizes(),
      "; the tensor has ", base.sizes());
  auto sum = with_context(
      "adding to " + entry.name, [&] { return add_delta(base, delta, alpha_, entry.dtype); });
  require<NumericError>(
      sum.finite, entry.name, " would hold NaN or infinity after ", alpha_,
      " times its delta is added: ",
      std::isfinite(sum.addition.norm_squared) ? "too large for "
                                               : "the delta is not finite; stored as ",
      entry.dtype);
  changes_[&entry] = {tensor, sum.addition};
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
        const auto& [tensor, addition] = change->second;
        written.addition.add(addition);
        written.changes.push_back(
            {.tensor = tensor,
             .norm = std::sqrt(addition.norm_squared),
             .rounding_loss = std::sqrt(addition.lost())});
      }
    }
    tell();
    written.files = files_->commit();
    written.norm = std::sqrt(written.addition.norm_squared);
    written.rounding_loss = std::sqrt(written.addition.lost());
    return written;
  });
}

WrittenModel write_model(
    const model::Model& target,
    const fs::path& directory,
    const Deltas& deltas,
    double alpha,
    const Watch& watch,
    const std::optional<ModelLayout>& layout) {
  auto writer = with_context("writing a model to " + directory.string(), [&] {
    return std::make_unique<ModelWriter>(
        target, directory, alpha, layout ? *layout : layout_of(target));
  });
  return writer->finish(deltas, watch);
}

}  // namespace theseus::output
