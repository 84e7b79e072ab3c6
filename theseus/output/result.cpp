#include "theseus/output/result.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/output/space.h"
#include "theseus/output/supervision.h"
#include "theseus/output/write_adapter.h"
#include "theseus/output/write_update.h"
#include "theseus/update/adapter.h"
#include "theseus/update/norm.h"

namespace theseus::output {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using transport::Disposition;

std::string write_word(
    const JobOptions& options, const transport::SourceUpdate* update, const maps::Method& method) {
  const bool noise = method.carries != maps::Carries::kUpdate;
  const bool dora = update != nullptr && update->is_adapter() && update->adapter()->is_dora();
  const bool adapter = update != nullptr && update->is_adapter() && !noise && !dora;
  const bool ranked = options.lora > 0;  // an adapter of what is carried, factors or not
  const auto word = !options.write.empty() ? options.write
                    : adapter || ranked    ? "adapter"
                                           : "model";
  require(
      !ranked || word == "adapter", "--lora is the rank of an adapter, and this job writes ",
      word == "model" ? "a model" : "an update", "; leave one of --lora and --write out");
  require(
      word != "adapter" || !noise,
      "--write adapter needs factors, and this method makes noise of full rank; use --write model "
      "or "
      "update");
  require(
      word != "adapter" || !dora || ranked,
      "--write adapter: a DoRA adapter scales the rows of the base's weights, so its update has no "
      "small rank and no factors to carry; use --lora RANK, or --write model or update");
  require(
      word != "adapter" || adapter || ranked || update == nullptr,
      "--write adapter needs an adapter as --tuned: the change of a whole model has no small rank; "
      "use --lora RANK for the nearest one of that rank, or --write model or update");
  require(
      word == "model" || !options.words.contains("output-dtype"),
      "--output-dtype is for a model, and this job writes an ", word, "; give --write model");
  require(
      word != "adapter" || ranked || mask_of(options) == gradient::Mask::kNone,
      "a mask leaves no factors of what an adapter changes; use --lora RANK, or --write model or "
      "update");
  return word;
}

namespace {

int64_t update_bytes(const std::vector<Disposition>& plan) {
  int64_t bytes = 0;
  for (const auto& row : plan) {
    int64_t elements = row.carried ? 4 : 0;
    for (const auto extent : row.target->shape) {
      elements *= extent;
    }
    bytes += elements;
  }
  return bytes;
}

}  // namespace

int64_t disk_needed(
    const std::string& write,
    OutputDtype dtype,
    const model::Model& target,
    const std::vector<Disposition>& plan,
    const transport::Schedule* schedule) {
  // What a job goes on from is saved now and then, the new beside the old.
  const auto work = (write == "adapter" ? 0 : update_bytes(plan)) +
                    (schedule != nullptr ? 2 * schedule->cost.saved : 0);
  return work + (write == "model"    ? bytes_of_output(target, dtype)
                 : write == "update" ? update_bytes(plan)
                                     : 0);
}

// Zeros for what the update changes and nothing carries: whoever reads the file sees that, too.
void write_update_file(
    const Opened& opened,
    const std::vector<Disposition>& plan,
    const Assembly& assembly,
    const fs::path& directory,
    const Watch& watch) {
  std::set<std::string> wanted;
  for (const auto& row : plan) {
    const bool left = !row.carried && row.source != nullptr && opened.update->changes(*row.source);
    if (left || assembly.contains(row.target->tensor)) {
      wanted.insert(row.target->tensor);
    }
  }
  std::vector<UpdateEntry> entries;
  for (const auto& tensor : wanted) {
    entries.push_back({tensor, assembly.shape(tensor)});
  }
  write_update(
      directory, entries,
      [&](const std::string& tensor) {
        const auto delta = assembly.delta(tensor);
        return delta.defined() ? delta : at::zeros(assembly.shape(tensor), at::kFloat);
      },
      watch);
}

namespace {

// With V the leading eigenvectors of the smaller of D D^T and D^T D, the nearest matrix of that
// rank to D [out, in] is V (V^T D), or (D V) V^T.
update::LowRank nearest_of_rank(const at::Tensor& delta, int64_t rank) {
  const auto whole = delta.to(at::kDouble);
  const bool tall = whole.size(0) > whole.size(1);
  const auto gram = tall ? whole.t().matmul(whole) : whole.matmul(whole.t());
  const auto kept = std::min(rank, gram.size(0));
  const auto vectors =
      std::get<1>(at::linalg_eigh(gram)).slice(1, gram.size(0) - kept);  // [., kept]
  const auto up = tall ? whole.matmul(vectors) : vectors;
  const auto down = tall ? vectors.t() : vectors.t().matmul(whole);
  return {
      at::constant_pad_nd(up, {0, rank - kept}).to(at::kFloat).contiguous(),
      at::constant_pad_nd(down, {0, 0, 0, rank - kept}).to(at::kFloat).contiguous()};
}

// Likewise to D = U M, by the core R M of U = Q R.
update::LowRank nearest_of_rank(const update::LowRank& delta, int64_t rank) {
  const auto [basis, core] = at::linalg_qr(delta.up.to(at::kDouble));
  auto nearest = nearest_of_rank(core.matmul(delta.down.to(at::kDouble)) * delta.scale, rank);
  nearest.up = basis.matmul(nearest.up.to(at::kDouble)).to(at::kFloat);
  return nearest;
}

}  // namespace

ordered_json write_adapter_files(
    const JobOptions& options,
    const Opened& opened,
    const Assembly& assembly,
    const fs::path& directory) {
  std::map<std::string, update::LowRank> modules;
  const auto* adapter = opened.update->adapter();
  AdapterOptions about{
      .task = adapter != nullptr ? adapter->task : "",
      .base_model = fs::weakly_canonical(options.target).string()};
  std::set<std::string> held;
  double whole = 0, kept = 0;  // squares
  for (const auto& layer : opened.target.architecture().linears) {
    about.modules.push_back(layer.module);
    const bool named = options.lora == 0 || layer.weight == layer.module + ".weight";
    if (!assembly.contains(layer.weight) || !named) {
      continue;
    }
    held.insert(layer.weight);
    auto& module = modules[layer.module];
    if (options.lora == 0) {
      module = assembly.factors(layer.weight);
    } else if (assembly.has_factors(layer.weight)) {
      const auto factors = assembly.factors(layer.weight);
      module = nearest_of_rank(factors, options.lora);
      whole += std::pow(factors.norm(), 2);
    } else {
      const auto delta = assembly.delta(layer.weight);
      module = nearest_of_rank(delta, options.lora);
      whole += std::pow(update::norm_of(delta), 2);
    }
    kept += std::pow(module.norm(), 2);
    module.scale *= options.alpha;
  }
  require(
      !modules.empty(),
      "nothing that is carried is the weight of a linear layer, which an adapter "
      "holds; use --write model");
  write_adapter(directory, modules, about);
  if (options.lora == 0) {
    return nullptr;
  }
  ordered_json record = {{"rank", options.lora}, {"kept", whole > 0 ? kept / whole : 1}};
  record["left_behind"] = ordered_json::array();
  for (const auto& tensor : assembly.tensors()) {
    if (assembly.contains(tensor) && !held.contains(tensor)) {
      record["left_behind"].push_back(tensor);
    }
  }
  return record;
}

std::vector<std::string> notes_on_adapter(const ordered_json& adapter) {
  constexpr size_t kShown = 4;
  if (adapter.is_null()) {
    return {};
  }
  std::vector<std::string> notes = {c10::str(
      "an adapter of rank ", adapter.at("rank").get<int64_t>(), " holds ",
      std::round(1000 * adapter.at("kept").get<double>()) / 10,
      " % of the square of what linear layers get")};
  const auto left = adapter.at("left_behind").get<std::vector<std::string>>();
  if (!left.empty()) {
    notes.push_back(c10::str(
        "an adapter holds weights of linear layers alone; left behind: ", joined(left, kShown)));
  }
  return notes;
}

}  // namespace theseus::output
