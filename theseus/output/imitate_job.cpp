#include "theseus/output/imitate_job.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/output/model_card.h"
#include "theseus/output/opened.h"
#include "theseus/output/side_files.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"
#include "theseus/output/write_model.h"
#include "theseus/output/write_update.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;

ordered_json describe_layers(const transport::Imitation& found) {
  auto rows = ordered_json::array();
  for (const auto& layer : found.layers) {
    rows.push_back(
        {{"module", layer.module},
         {"source_block", layer.source_block},
         {"wanted", layer.wanted},
         {"share", layer.share}});
  }
  return rows;
}

void write_tensors(
    const ImitateJob& given,
    const Opened& opened,
    const transport::Imitation& found,
    const std::filesystem::path& directory) {
  const Deltas deltas = [&](const std::string& tensor) {
    const auto delta = found.deltas.find(tensor);
    return delta == found.deltas.end() ? at::Tensor() : delta->second;
  };
  if (given.job.write == "update") {
    std::vector<UpdateEntry> entries;
    for (const auto& [tensor, delta] : found.deltas) {
      entries.push_back({.tensor = tensor, .shape = delta.sizes().vec()});
    }
    write_update(directory, entries, deltas);
    return;
  }
  write_model(opened.target, directory, deltas, given.job.alpha);
  copy_side_files(opened.target, directory, {kRecordFile, kRecipeFile, kCardFile});
}

}  // namespace

ordered_json imitate_job(const ImitateJob& given, const transport::Watch& watch) {
  const auto& job = given.job;
  require(
      job.write == "model" || job.write == "update", "--write: '", job.write,
      "' is none of: model update");
  require(!job.calibration.empty(), "imitation needs examples of the new kind: give --calibration");
  auto opened = open_all(job, watch);
  std::vector<const stats::Calibration*> calibrations = {opened.find_calibration()};
  std::optional<Opened> familiar;
  auto identity = ordered_json::parse(identity_of(job, opened));
  if (!given.familiar.empty()) {
    auto other = job;
    other.calibration = given.familiar;
    familiar.emplace(open_all(other, watch));
    calibrations.push_back(familiar->find_calibration());
    identity["familiar"] = ordered_json::parse(identity_of(other, *familiar)).at("inputs");
  }
  WorkDirectory work(job.out, identity.dump(1), job.fresh);
  const auto found = transport::imitate(
      opened.source, *opened.update, opened.target, calibrations, given.fit,
      [&](int64_t done, int64_t all) {
        watch(static_cast<double>(done), static_cast<double>(all), "fitting blocks");
      });
  require(!found.layers.empty(), "the examples reach no layer that could be fitted");
  ordered_json record = {{"theseus", job.version}, {"options", job.words}};
  record.update(describe_inputs(job, opened));
  if (familiar) {
    record["familiar"] = describe_inputs(job, *familiar).at("calibration");
  }
  record["method"] = "imitate";
  record["alpha"] = job.alpha;
  record["write"] = job.write;
  record["device"] = c10::str(job.placement.device);
  record["threads"] = at::get_num_threads();
  record["layers"] = describe_layers(found);
  record["notes"] = ordered_json::array();
  if (!familiar) {
    record["notes"].push_back(
        "no --familiar examples: the map between the models saw only inputs of the new kind, which "
        "the bases may read badly");
  }
  work.keep();
  write_tensors(given, opened, found, work.staged());
  write_json(work.staged() / kRecordFile, record);
  write_text(work.staged() / kRecipeFile, job.recipe);
  auto card = record;
  card.erase("layers");
  write_model_card(work.staged(), card, library_of(opened.target.location().family));
  work.finish();
  return record;
}

}  // namespace theseus::output
