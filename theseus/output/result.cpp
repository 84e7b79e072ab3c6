#include "theseus/output/result.h"

#include <map>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/output/space.h"
#include "theseus/output/supervision.h"
#include "theseus/output/write_adapter.h"
#include "theseus/output/write_update.h"

namespace theseus::output {

namespace fs = std::filesystem;
using transport::Disposition;

std::string write_word(
    const JobOptions& options, const transport::SourceUpdate* update, const maps::Method& method) {
  const bool noise = method.carries != maps::Carries::kUpdate;
  const bool dora = update != nullptr && update->is_adapter() && update->adapter()->is_dora();
  const bool adapter = update != nullptr && update->is_adapter() && !noise && !dora;
  const auto word = !options.write.empty() ? options.write : adapter ? "adapter" : "model";
  require(
      word != "adapter" || !noise,
      "--write adapter needs factors, and this method makes noise of full rank; use --write model "
      "or "
      "update");
  require(
      word != "adapter" || !dora,
      "--write adapter: a DoRA adapter scales the rows of the base's weights, so its update has no "
      "small rank and no factors to carry; use --write model or update");
  require(
      word != "adapter" || adapter || update == nullptr,
      "--write adapter needs an adapter as --tuned: the change of a whole model has no small rank; "
      "use --write model or update");
  require(
      word == "model" || !options.words.contains("output-dtype"),
      "--output-dtype is for a model, and this job writes an ", word, "; give --write model");
  require(
      word != "adapter" || mask_of(options) == gradient::Mask::kNone,
      "a mask leaves no factors of what an adapter changes; use --write model or update");
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

void write_adapter_files(
    const JobOptions& options,
    const Opened& opened,
    const Assembly& assembly,
    const fs::path& directory) {
  std::map<std::string, update::LowRank> modules;
  AdapterOptions about{
      .task = opened.update->adapter()->task,
      .base_model = fs::weakly_canonical(options.target).string()};
  for (const auto& layer : opened.target.architecture().linears) {
    about.modules.push_back(layer.module);
    if (assembly.contains(layer.weight)) {
      auto factors = assembly.factors(layer.weight);
      factors.scale *= options.alpha;
      modules[layer.module] = factors;
    }
  }
  write_adapter(directory, modules, about);
}

}  // namespace theseus::output
