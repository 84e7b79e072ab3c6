#include "theseus/train/start.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/sweep.h"
#include "theseus/output/write_update.h"
#include "theseus/transport/source_update.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;

bool is_update(const fs::path& path) {
  std::error_code ignored;
  return path.filename() == output::kUpdateFile || fs::exists(path / output::kUpdateFile, ignored);
}

Tensors from_tuned(const std::string& path, double alpha, const model::Model& model) {
  const auto update = transport::SourceUpdate::open(path, model);
  transport::require_change(update, model.architecture());
  return transport::with_deltas(
      model, transport::whole_deltas(update, model.architecture()), alpha);
}

std::map<std::string, update::LowRank> from_adapter(
    const std::string& path, double alpha, int64_t rank, model::Model& model) {
  require(
      update::is_adapter(path), "--start-from: with --lora it must be an adapter, and ", path,
      " is none: an adapter is for a model that is on disk; write that one first, with 'theseus "
      "transport', and give it as --model");
  const auto adapter = update::read_adapter(path);
  require(
      !adapter.is_dora(), "--start-from: ", path,
      " is a DoRA adapter, and --lora goes on with plain factors; train without --lora");
  require(
      adapter.saved.empty(), "--start-from: the adapter ", path,
      " replaces whole tensors, which --lora cannot go on with");
  model.attach(adapter);
  std::map<std::string, update::LowRank> result;
  for (const auto& layer : model.architecture().linears) {
    if (const auto* factors = model.weights().find_low_rank(layer.module)) {
      require(
          factors->down.size(0) == rank, "--start-from: ", layer.module, " has rank ",
          factors->down.size(0), " in the adapter, and --lora is ", rank);
      result[layer.module] = {
          .up = factors->up * alpha, .down = factors->down, .scale = factors->scale};
    }
  }
  model.detach();
  return result;
}

}  // namespace

Start read_start(const std::string& path, double alpha, int64_t rank, model::Model& model) {
  return with_context("reading what to start from", [&] {
    const c10::NoGradGuard no_gradients;
    Start start;
    if (rank > 0) {
      start.low_rank = from_adapter(path, alpha, rank, model);
    } else {
      start.tensors = is_update(path)
                          ? transport::with_deltas(model, evaluate::read_update(path, model), alpha)
                          : from_tuned(path, alpha, model);
    }
    return start;
  });
}

}  // namespace theseus::train
