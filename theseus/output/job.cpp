#include "theseus/output/job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "theseus/base/error.h"
#include "theseus/base/machine_notes.h"
#include "theseus/base/made_files.h"
#include "theseus/output/carriage.h"
#include "theseus/output/carried_files.h"
#include "theseus/output/follow.h"
#include "theseus/output/job_maps.h"
#include "theseus/output/job_notes.h"
#include "theseus/output/plan_of.h"
#include "theseus/output/record.h"
#include "theseus/output/result.h"
#include "theseus/output/space.h"
#include "theseus/output/supervision.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"
#include "theseus/transport/alignment.h"
#include "theseus/transport/duration.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using transport::MapSet;

// All through the same alignment; each stage's maps are read once.
void carry_through_alignment(
    const std::vector<Carriage*>& carriages,
    const std::string& doing,
    const transport::Watch& watch) {
  const auto stages = carriages.front()->stages();
  for (int64_t stage = 0; stage < stages; ++stage) {
    watch(static_cast<double>(stage), static_cast<double>(stages), doing);
    auto maps = carriages.front()->alignment()->maps(stage);
    for (auto& [space, map] : maps) {
      map = map.to(carriages.front()->device());
    }
    for (auto* carriage : carriages) {
      carriage->carry(stage, maps);
    }
  }
}

// The directory that several outputs go to; taken away again when none came.
class Library {
 public:
  explicit Library(const fs::path& path) : path_(path) {
    std::error_code error;
    fs::create_directory(path_, error);
    require(!error, "--out: cannot make ", path_.string(), ": ", error.message());
  }
  ~Library() {
    std::error_code ignored;
    fs::remove(path_, ignored);  // only when it is empty
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 private:
  fs::path path_;
};

// Returns the operations of the forward passes that the job really runs, given those that the schedule counts for both
// models. A model whose gradients are needed also goes forward and back through every example, which takes as long as
// three forward passes.
double passes_of(const JobOptions& options, const Opened& opened, double forward) {
  const auto& needs = maps::method(options.align.method).needs;
  const auto target = static_cast<double>(opened.target.parameter_count());
  const auto both = target + static_cast<double>(opened.source.parameter_count());
  const bool masks = mask_of(options) != gradient::Mask::kNone;
  const double learning = needs.gradients ? 1 : masks ? target / both : 0;
  return forward * ((needs.moments ? 1 : 0) + 3 * learning);
}

// Weights that are read, and what is written.
int64_t bytes_moved(const Opened& opened, int64_t written) {
  for (const auto* model : {&opened.source, &opened.target}) {
    for (const auto& tensor : model->checkpoint().tensors()) {
      written += static_cast<int64_t>(tensor.bytes);
    }
  }
  return written;
}

}  // namespace

ordered_json plan_job(const JobOptions& options, const transport::Watch& watch) {
  auto opened = open_all(options, watch);
  auto maps = find_maps(options, opened, {}, watch);
  const auto plan = plan_of(options, opened, maps.route, maps.towers);
  const auto write = write_word(options, opened.update ? &*opened.update : nullptr, *maps.method);
  ordered_json record = {{"method", method_word(options, opened)}, {"write", write}};
  if (maps.aligner) {
    if (maps.method->needs.moments) {  // else no model runs
      record["dtype"] = dtype_word(options.placement);
    }
    record["tokens"] = maps.aligner->matcher_words();
    record["depth"] =
        describe_depth(maps.route, opened, options.align.depth, maps.aligner->similarity());
    maps.aligner->set_loads(transport::loads_of(plan, opened.update ? &*opened.update : nullptr));
    const auto schedule = maps.aligner->schedule(transport::spaces_of(plan));
    record["schedule"] = describe_schedule(schedule, options.placement.device);
    record["disk_bytes"] = disk_needed(write, options.output_dtype, opened.target, plan, &schedule);
    auto cost = schedule.cost;
    cost.forward = passes_of(options, opened, cost.forward);
    record["device"] = c10::str(options.placement.device);
    record["seconds"] = transport::seconds_of(
        cost, bytes_moved(opened, record["disk_bytes"].get<int64_t>()),
        transport::measure_rates(options.placement.device, options.placement.dtype));
  } else {
    record["depth"] = opened.alignment->about().at("depth");
    record["disk_bytes"] = disk_needed(write, options.output_dtype, opened.target, plan, nullptr);
    if (opened.update && mask_of(options) == gradient::Mask::kNone) {  // else examples are learnt
      record["device"] = c10::str(options.placement.device);
      record["seconds"] = transport::seconds_of(
          {.carry = transport::carrying_cost(transport::loads_of(plan, &*opened.update))},
          bytes_moved(opened, record["disk_bytes"].get<int64_t>()),
          transport::measure_rates(options.placement.device, options.placement.dtype));
    }
  }
  if (opened.calibration) {
    record["examples"] = describe_examples(options, opened);
  }
  record["parameters"] = describe_plan(plan);
  record["totals"] = totals_of(record["parameters"]);
  record["notes"] = notes_before(options, opened, maps, plan, write);
  if (write == "model") {
    record["output_dtype"] = plan_storage(opened.target, options.output_dtype);
  }
  return record;
}

ordered_json transport_job(const JobOptions& options, const transport::Watch& watch) {
  Carriage carriage(options, watch);
  if (!carriage.delivered().is_null()) {
    return carriage.delivered();
  }
  if (carriage.alignment() == nullptr) {
    carriage.align_and_carry(watch);
    return carriage.deliver(watch);
  }
  const std::vector<Carriage*> alone = {&carriage};
  carry_through_alignment(alone, "carrying", watch);
  return carriage.deliver(watch);
}

std::vector<ordered_json> transport_jobs(
    const std::vector<JobOptions>& jobs, const transport::Watch& watch) {
  // Each holds its models open, and a lock; and what is interrupted has these to carry again.
  constexpr size_t kAtOnce = 4;
  std::vector<ordered_json> records(jobs.size());
  std::vector<size_t> left;
  for (size_t i = 0; i < jobs.size(); ++i) {
    require(
        !jobs[i].alignment.empty(),
        "several updates go through one --alignment, which 'theseus align' makes");
    records[i] = find_delivered(jobs[i], watch);
    if (records[i].is_null()) {
      require_free(jobs[i].out, jobs[i].fresh);
      left.push_back(i);
    }
  }
  for (const auto i : left) {  // what cannot be read is said before anything is written
    with_context("opening " + jobs[i].tuned.string(), [&] { open_all(jobs[i], watch); });
  }
  const Library library(jobs.front().out.parent_path());
  for (size_t first = 0; first < left.size(); first += kAtOnce) {
    const auto last = std::min(left.size(), first + kAtOnce);
    std::vector<std::unique_ptr<Carriage>> carriages;
    std::vector<Carriage*> together;
    for (size_t i = first; i < last; ++i) {
      const auto& job = jobs[left[i]];
      carriages.push_back(with_context("carrying " + job.tuned.string(), [&] {
        return std::make_unique<Carriage>(job, watch);
      }));
      together.push_back(carriages.back().get());
    }
    // Of the updates, all on one scale: carrying is most of it.
    const auto part = [&](double begin, double end) -> transport::Watch {
      return [&, begin, end](double done, double all, const std::string& doing) {
        const auto reached = begin + (end - begin) * (all > 0 ? done / all : 0);
        watch(
            static_cast<double>(first) + reached * static_cast<double>(last - first),
            static_cast<double>(left.size()),
            c10::str("updates ", first + 1, " to ", last, " of ", left.size(), ": ", doing));
      };
    };
    constexpr double kCarrying = 0.8;
    carry_through_alignment(together, "carrying", part(0, kCarrying));
    const auto written = (1 - kCarrying) / static_cast<double>(last - first);
    for (size_t i = first; i < last; ++i) {
      const auto begin = kCarrying + written * static_cast<double>(i - first);
      records[left[i]] = carriages[i - first]->deliver(part(begin, begin + written));
      carriages[i - first].reset();
    }
  }
  return records;
}

ordered_json align_job(const JobOptions& given, const transport::Watch& watch) {
  auto options = given;
  require(
      mask_of(options) == gradient::Mask::kNone,
      "a mask is of one update, and an alignment for any; give it to 'theseus transport'");
  const auto warm = warming(options);
  auto opened = open_all(options, watch);
  const Identity identity = [&] { return identity_of(options, opened); };
  auto there = find_finished(options.out, identity, options.fresh);
  if (is_finished(options, !there.is_null())) {
    return there;
  }
  WorkDirectory work(options.out, identity, options.fresh);
  fix_memory(options, work.path());
  auto maps = find_maps(options, opened, work.path(), watch);
  const auto plan = transport::make_plan(
      opened.source, opened.target, maps.route,
      {.norms = transport::Norms::kDiagonal, .heads = true, .towers = maps.towers});
  require_memory_for_labels(options, opened, plan);
  const auto needed = transport::spaces_of(plan);
  const auto schedule = maps.aligner->schedule(needed);
  const auto stages = work.path() / "stages";
  note_made(stages);
  fs::create_directories(stages);
  require_space(
      work.path(), schedule.cost.files + 2 * schedule.cost.saved,  // the new beside the old
      "the maps");
  CarriedFiles files(work.path());
  auto rows = ordered_json::array();
  std::vector<fs::path> written;
  work.keep();
  Aside hashing(options.placement.device);  // the host is busy with that, and a GPU can work
  hashing.run([&] { work.identify(); });
  work.attempt([&] {
    run_once(
        *maps.aligner, needed, work.path(),
        {.stage =
             [&](int64_t stage, const MapSet& found, const stats::Moments& moments) {
               const auto files_of_it =
                   transport::Alignment::write_stage(stages, stage, found, moments);
               written.insert(written.end(), files_of_it.begin(), files_of_it.end());
               for (auto& row : transport::describe(stage, found, moments)) {
                 rows.push_back(std::move(row));
               }
             },
         .group =
             [&](int64_t first, int64_t last) {
               return [&files, first, last, rows = std::exchange(rows, ordered_json::array()),
                       written = std::exchange(written, {})] {
                 files.write(first, last, {}, rows, written);
               };
             },
         .begin =
             [&](int64_t first) {
               files.drop_from(first);
               CarriedFiles(work.path())
                   .open(first);  // what is damaged is said before hours of work
               work.went_on_at(stage_words(first, *maps.aligner));
             },
         .sync =
             [&] {
               hashing.wait();  // what is saved is somebody's
               files.sync();
             }},
        watch, options.save_every);
  });
  hashing.wait();
  files.open(static_cast<int64_t>(maps.route.pairs.size()) + 2);
  ordered_json record = {{"theseus", options.version}, {"options", options.words}};
  record.update(describe_inputs(options, opened));
  record["method"] = method_word(options, opened);
  record["dtype"] = dtype_word(options.placement);
  add_processes(options, record);
  record["tokens"] = maps.aligner->matcher_words();
  record["towers"] = maps.towers;
  record["depth"] =
      describe_depth(maps.route, opened, options.align.depth, maps.aligner->similarity());
  record["spaces"] = files.rows();
  auto notes = notes_on_maps(record["spaces"]);
  const auto gradients = notes_on_gradients(options, opened, record["spaces"]);
  notes.insert(notes.end(), gradients.begin(), gradients.end());
  for (const auto& more :
       {notes_on_schedule(options, opened, schedule),
        machine_notes(options.placement.device, options.placement.dtype),
        notes_on_examples(opened)}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  record["notes"] = notes;
  record["schedule"] = describe_schedule(schedule, options.placement.device);
  fs::remove(work.path() / kWalkSavedFile);
  fs::remove(work.path() / kWalkFile);    // it may be left of a process that was killed
  fs::remove(work.path() / kSolvedFile);  // a process that is killed now must begin anew
  for (const auto& entry : fs::directory_iterator(stages)) {
    note_made(work.staged() / entry.path().filename());
    fs::rename(entry.path(), work.staged() / entry.path().filename());
  }
  write_text(work.staged() / kRecipeFile, options.recipe);
  record = transport::Alignment::whole_about(work.staged(), record);
  work.finish(kAlignmentRecord, record);
  return record;
}

}  // namespace theseus::output
