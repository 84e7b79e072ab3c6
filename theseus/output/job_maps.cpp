#include "theseus/output/job_maps.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/gpu.h"
#include "theseus/maps/certify.h"
#include "theseus/maps/polar.h"
#include "theseus/output/method_words.h"
#include "theseus/output/record.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using transport::Aligner;

constexpr const char* kMemoryFile = "memory.json";
constexpr const char* kAllSolved = "all maps are there\n";
constexpr int64_t kLongestWord = 1 << 10;

// Matching blocks takes a pass over the calibration, so an interrupted job keeps what it found.
Aligner make_aligner(
    const JobOptions& options,
    Opened& opened,
    const fs::path& work,
    const transport::Watch& watch) {
  const auto file = work / kRouteFile;
  std::error_code ignored;
  const bool there = !work.empty() && fs::exists(file, ignored);
  const auto saved = nlohmann::json::parse(
      options.align.processes->from_first(there ? read_checked_json(file).dump() : "null"));
  if (!saved.is_null()) {
    at::Tensor similarity;
    if (saved.contains("similarity")) {
      std::vector<at::Tensor> rows;
      for (const auto& row : saved.at("similarity")) {
        rows.push_back(at::tensor(row.get<std::vector<double>>(), at::kDouble));
      }
      similarity = at::stack(rows);
    }
    return {
        opened.source,
        opened.target,
        opened.find_calibration(),
        options.align,
        transport::read_route(saved),
        similarity};
  }
  Aligner aligner(opened.source, opened.target, opened.find_calibration(), options.align, watch);
  if (!work.empty() && aligner.similarity().defined()) {
    const auto depth =
        describe_depth(aligner.route(), opened, options.align.depth, aligner.similarity());
    write_checked_json(file, depth);
  }
  return aligner;
}

// Processes of this machine that compute on the same device as this one, where a GPU is chosen by LOCAL_RANK.
int64_t sharing(c10::Device device, int here) {
  if (here == 1 || device.is_cpu()) {
    return here;
  }
  const auto gpus = std::max<int64_t>(1, std::ssize(list_gpus()));
  return (here + gpus - 1) / gpus;
}

}  // namespace

void fix_memory(JobOptions& options, const fs::path& work) {
  if (options.align.memory > 0) {
    return;
  }
  const auto& processes = *options.align.processes;
  const auto device = options.placement.device;
  const auto file = work / kMemoryFile;
  std::error_code ignored;
  if (processes.first() && !fs::exists(file, ignored)) {
    write_checked_json(
        file, transport::available_memory(device) / sharing(device, processes.here()));
  }
  options.align.memory =
      std::stoll(processes.from_first(processes.first() ? read_checked_json(file).dump() : ""));
}

void run_once(
    Aligner& aligner,
    const transport::SpaceSet& needed,
    const fs::path& work,
    const transport::Sink& sink,
    const transport::Watch& watch,
    double save_every) {
  std::error_code ignored;
  const auto& processes = aligner.processes();
  const auto solved = work / kSolvedFile;
  const bool there = processes.first() && fs::exists(solved, ignored);
  require(
      !there || read_text_file(solved, kLongestWord) == kAllSolved,
      "the unfinished work is damaged: the content of ", solved.string(),
      " is not what was written; --fresh starts anew");
  if (processes.from_first(there ? "solved" : "").empty()) {
    auto whole = sink;
    whole.end = [&] {
      sink.sync();
      write_text(solved, kAllSolved);
    };
    aligner.run(needed, work, whole, watch, save_every);
  }
}

std::unique_ptr<Aside> warming(const JobOptions& options) {
  auto aside = std::make_unique<Aside>(options.placement.device);
  const auto& needs = maps::method(options.align.method).needs;
  if (options.alignment.empty() && (needs.moments || needs.weight_cross || needs.weight_grams)) {
    aside->warm_up([like = at::TensorOptions(options.placement.device).dtype(at::kDouble)] {
      for (const int64_t size : {int64_t{768}, maps::kSmall + 8}) {  // both kinds that there are
        const auto values = at::logspace(0, -3, size, 10.0, like).unsqueeze(1);
        maps::polar(values * at::eye(size, size + 128, like));
        at::linalg_eigh(at::eye(size, like));
      }
    });
  }
  return aside;
}

std::string stage_words(int64_t first, const Aligner& aligner) {
  return c10::str("stage ", first + 1, " of ", aligner.route().pairs.size() + 2);
}

std::string dtype_word(const model::Placement& placement) {
  return placement.tf32                     ? "tf32"
         : placement.dtype == at::kBFloat16 ? "bfloat16"
         : placement.dtype == at::kHalf     ? "float16"
         : placement.dtype == at::kDouble   ? "float64"
                                            : "float32";
}

std::string method_word(const JobOptions& options, const Opened& opened) {
  return opened.alignment ? opened.alignment->about().at("method").get<std::string>()
                          : method_words(options.align);
}

Maps find_maps(
    const JobOptions& options,
    Opened& opened,
    const fs::path& work,
    const transport::Watch& watch) {
  Maps maps;
  if (opened.alignment) {
    require_same_bases(opened);
    const auto& about = opened.alignment->about();
    maps.route = opened.alignment->route();
    transport::require_fits(maps.route, opened.source.architecture(), opened.target.architecture());
    maps.towers = about.at("towers").get<std::set<std::string>>();
    maps.method = &method_of(about.at("method").get<std::string>());
  } else {
    maps.aligner.emplace(make_aligner(options, opened, work, watch));
    maps.route = maps.aligner->route();
    maps.towers = maps.aligner->towers();
    maps.method = &maps.aligner->method();
  }
  return maps;
}

}  // namespace theseus::output
