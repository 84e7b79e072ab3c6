#include "theseus/output/job.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/output/assembly.h"
#include "theseus/output/carried_files.h"
#include "theseus/output/model_card.h"
#include "theseus/output/opened.h"
#include "theseus/output/plan_of.h"
#include "theseus/output/record.h"
#include "theseus/output/result.h"
#include "theseus/output/side_files.h"
#include "theseus/output/sign_mask.h"
#include "theseus/output/space.h"
#include "theseus/output/supervision.h"
#include "theseus/output/work_directory.h"
#include "theseus/output/write_model.h"
#include "theseus/transport/alignment.h"
#include "theseus/transport/carry.h"
#include "theseus/transport/similarity.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using transport::Aligner;
using transport::Disposition;
using transport::MapSet;

constexpr const char* kRecordFile = "theseus.json";
constexpr const char* kRecipeFile = "recipe.yaml";
constexpr const char* kMemoryFile = "memory.json";
constexpr int64_t kLongestRoute = 256 << 20;

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.append(text);
  file.commit();
}

std::string dumped(const ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A file of the unfinished work.
nlohmann::json read_work(const fs::path& file) {
  const auto found = nlohmann::json::parse(
      read_text_file(file, kLongestRoute), nullptr, /*allow_exceptions=*/false);
  require(
      !found.is_discarded(), "the unfinished work is damaged: ", file.string(),
      " is not JSON; --fresh starts anew");
  return found;
}

// What is free now may not be free after an interruption, and the order of the work follows from it:
// the first process decides.
void fix_memory(JobOptions& options, const fs::path& work) {
  if (options.align.memory > 0) {
    return;
  }
  const auto file = work / kMemoryFile;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    write_text(file, dumped(transport::available_memory()));
  }
  options.align.memory = read_work(file).get<int64_t>();
}

// Runs the aligner, unless an earlier process came to its end.
void run_once(
    Aligner& aligner,
    const transport::SpaceSet& needed,
    const fs::path& work,
    const transport::Sink& sink,
    const transport::Watch& watch,
    double save_every) {
  std::error_code ignored;
  if (!fs::exists(work / kSolvedFile, ignored)) {
    aligner.run(needed, work, sink, watch, save_every);
    write_text(work / kSolvedFile, "all maps are there\n");
  }
}

std::string method_word(const JobOptions& options, const Opened& opened) {
  return opened.alignment ? opened.alignment->about().at("method").get<std::string>()
                          : options.align.method;
}

// How a job comes by its maps: from an alignment, or by making them. What goes through them may be masked.
struct Maps {
  std::optional<Aligner> aligner;
  stats::Route route;
  std::set<std::string> towers;
  const maps::Method* method = nullptr;
  std::optional<SignMask> mask;
};

// Matching blocks takes a pass over the calibration, so an interrupted job keeps what it found.
Aligner make_aligner(
    const JobOptions& options,
    Opened& opened,
    const fs::path& work,
    const transport::Watch& watch) {
  const auto file = work / kRouteFile;
  std::error_code ignored;
  if (!work.empty() && fs::exists(file, ignored)) {
    const auto saved = read_work(file);
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
    write_text(file, dumped(depth));
  }
  return aligner;
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
    maps.method = &maps::method(about.at("method").get<std::string>());
  } else {
    maps.aligner.emplace(make_aligner(options, opened, work, watch));
    maps.route = maps.aligner->route();
    maps.towers = maps.aligner->towers();
    maps.method = &maps.aligner->method();
  }
  return maps;
}

// An adapter holds factors; whole tensors that another replaced would have to be those of its model.
void require_factors(
    const std::vector<Disposition>& plan, const Opened& opened, const stats::Route& route) {
  const auto& update = *opened.update;
  for (const auto& row : plan) {
    if (!row.carried) {
      continue;
    }
    for (const auto* part : transport::sources_of(row, opened.source.architecture(), route)) {
      require(
          !update.changes(*part) || update.find_low_rank(*part), "the adapter replaces ",
          part->name,
          " as a whole, which an adapter for another model cannot hold; use --write model");
    }
  }
}

// A target block's tensors with the update on them, from the groups that are on disk.
std::map<std::string, at::Tensor> updated_block(
    const Opened& opened, const fs::path& work, int64_t block, double alpha) {
  CarriedFiles files(work);
  files.open();
  const Assembly assembly(opened.target.architecture(), files);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& parameter : opened.target.architecture().parameters) {
    if (parameter.block == block && assembly.contains(parameter.tensor)) {
      const auto base = opened.target.checkpoint().tensor(parameter.stored).to(at::kFloat);
      tensors[parameter.tensor] = base + alpha * assembly.delta(parameter.tensor);
    }
  }
  return tensors;
}

// A source block's tensors as tuned.
std::map<std::string, at::Tensor> tuned_block(const Opened& opened, int64_t block) {
  const auto& source = opened.source;
  auto tensors = transport::whole_deltas(*opened.update, source.architecture(), block);
  for (const auto& parameter : source.architecture().parameters) {
    const auto found = tensors.find(parameter.tensor);
    if (parameter.row == 0 && found != tensors.end()) {
      found->second = source.checkpoint().tensor(parameter.stored).to(at::kFloat) + found->second;
    }
  }
  return tensors;
}

// Carries every group as its maps come.
void carry_all(
    const JobOptions& options,
    const Opened& opened,
    Maps& maps,
    const std::vector<Disposition>& plan,
    const CarriedFiles& files,
    const transport::Watch& watch) {
  const transport::Carrier carrier(
      *opened.update, opened.source.architecture(), maps.route, plan, maps.method->carries,
      options.align.sampling.seed);
  std::map<std::string, transport::Carried> group;
  auto rows = ordered_json::array();
  const transport::Sink sink{
      .stage =
          [&](int64_t stage, const MapSet& found, const stats::Moments& moments) {
            carrier.carry(stage, found, group);
            for (auto& row : transport::describe(stage, found, moments)) {
              rows.push_back(std::move(row));
            }
          },
      .group =
          [&](int64_t first) {
            if (maps.mask) {
              maps.mask->apply(group);
            }
            files.write(first, group, rows);
            group.clear();
            rows = ordered_json::array();
          },
      .tuned = [&](int64_t block) { return tuned_block(opened, block); },
      .updated =
          [&](int64_t block) {
            return updated_block(opened, files.directory(), block, options.alpha);
          }};
  const auto needed = transport::spaces_of(plan);
  if (maps.aligner) {
    run_once(*maps.aligner, needed, files.directory(), sink, watch, options.save_every);
    return;
  }
  const auto stages = static_cast<int64_t>(maps.route.pairs.size()) + 2;
  for (int64_t stage = 0; stage < stages; ++stage) {
    watch(static_cast<double>(stage), static_cast<double>(stages), "carrying");
    carrier.carry(stage, opened.alignment->maps(stage), group);
    const bool more = stage > 0 && stage + 2 < stages &&
                      maps.route.pairs[static_cast<size_t>(stage)].target ==
                          maps.route.pairs[static_cast<size_t>(stage - 1)].target;
    if (!more) {
      sink.group(stage);
    }
  }
}

// Of everything that arrived, before its strength: less than the source's where a mask or a narrower
// target took some.
double carried_norm(const ordered_json& parameters) {
  double square = 0;
  for (const auto& row : parameters) {
    square += std::pow(row.value("target_norm", 0.0), 2);
  }
  return std::sqrt(square);
}

ordered_json totals_of(const ordered_json& parameters) {
  std::map<std::string, int64_t> counts;
  for (const auto& row : parameters) {
    ++counts[row.at("action")];
  }
  return counts;
}

void write_texts(
    const fs::path& directory,
    const ordered_json& record,
    const std::string& recipe,
    const std::string& library) {
  write_text(directory / kRecordFile, dumped(record));
  write_text(directory / kRecipeFile, recipe);
  auto card = record;
  for (const char* key : {"parameters", "spaces", "schedule", "depth"}) {
    card.erase(key);
  }
  card["update"].erase("left_behind");
  write_model_card(directory, card, library);
}

// Of a calibration that was made from data; null: it was not.
std::vector<std::string> notes_on_drawn(const ordered_json& drawn) {
  std::vector<std::string> notes;
  if (drawn.contains("left_out_names")) {
    notes.push_back(c10::str(
        drawn.at("left_out").get<int64_t>(), " images could not be decoded and were left out: ",
        drawn.at("left_out_names").get<std::string>()));
  }
  if (drawn.contains("truncated") && drawn.at("truncated") > 0) {
    notes.push_back(c10::str(
        drawn.at("truncated").get<int64_t>(),
        " texts were longer than a model takes and were cut"));
  }
  return notes;
}

// What a reader should know before the work begins.
std::vector<std::string> notes_before(
    const JobOptions& options,
    const Opened& opened,
    const Maps& maps,
    const std::vector<Disposition>& plan,
    const std::string& write) {
  const auto& source = opened.source.architecture();
  const auto& target = opened.target.architecture();
  std::vector<std::string> notes;
  if (opened.update) {
    notes = opened.update->notes();
    const auto left = notes_on_update(plan, opened);
    notes.insert(notes.end(), left.begin(), left.end());
  }
  if (options.words.contains("depth") && !transport::depths_differ(source, target)) {
    notes.emplace_back("--depth makes no difference: both models have the same number of blocks");
  }
  if (maps.aligner && maps.aligner->similarity().defined() &&
      transport::is_estimated(source, target)) {
    notes.emplace_back(
        "the similarities of blocks are estimated from random projections, to some percent: where "
        "blocks are almost equally alike, the match may be another one than that of all features");
  }
  if (maps.aligner) {
    const auto doubts = maps.aligner->notes(transport::spaces_of(plan));
    notes.insert(notes.end(), doubts.begin(), doubts.end());
  }
  const auto drawn = notes_on_drawn(opened.drawn);
  notes.insert(notes.end(), drawn.begin(), drawn.end());
  const auto labels = notes_on_labels(options, opened, plan);
  notes.insert(notes.end(), labels.begin(), labels.end());
  if (write == "update" && options.words.contains("alpha") && !options.align.in_order) {
    notes.emplace_back("--alpha makes no difference to --write update, which is not scaled");
  }
  for (const auto& info : opened.target.checkpoint().tensors()) {
    if (write == "model" && (info.dtype == "BF16" || info.dtype == "F16")) {
      notes.push_back(c10::str(
          "the target stores its weights as ", info.dtype,
          ": what rounding takes of the update is reported with the result"));
      break;
    }
  }
  return notes;
}

// The head of a transport's record: what went in, and how it was asked for.
ordered_json describe_job(
    const JobOptions& options, const Opened& opened, const Maps& maps, const std::string& write) {
  ordered_json record = {{"theseus", options.version}, {"options", options.words}};
  record.update(describe_inputs(options, opened));
  record["method"] = method_word(options, opened);
  record["alpha"] = options.alpha;
  record["write"] = write;
  record["device"] = c10::str(options.placement.device);
  record["threads"] = at::get_num_threads();  // the last bits of sums depend on it
  record["depth"] =
      opened.alignment
          ? ordered_json(opened.alignment->about().at("depth"))
          : describe_depth(maps.route, opened, options.align.depth, maps.aligner->similarity());
  if (maps.aligner) {
    record["match"] = maps.aligner->matcher_words();
  }
  return record;
}

}  // namespace

ordered_json plan_job(const JobOptions& options, const transport::Watch& watch) {
  auto opened = open_all(options, watch);
  const auto maps = find_maps(options, opened, {}, watch);
  const auto plan = plan_of(options, opened, maps.route, maps.towers);
  const auto write = write_word(options, opened.update ? &*opened.update : nullptr, *maps.method);
  ordered_json record = {{"method", method_word(options, opened)}, {"write", write}};
  if (maps.aligner) {
    record["match"] = maps.aligner->matcher_words();
    record["depth"] =
        describe_depth(maps.route, opened, options.align.depth, maps.aligner->similarity());
    const auto schedule = maps.aligner->schedule(transport::spaces_of(plan));
    record["schedule"] = describe_schedule(schedule);
    record["disk_bytes"] = disk_needed(write, opened.target, plan, &schedule);
  } else {
    record["depth"] = opened.alignment->about().at("depth");
    record["disk_bytes"] = disk_needed(write, opened.target, plan, nullptr);
  }
  record["parameters"] = describe_plan(plan);
  record["totals"] = totals_of(record["parameters"]);
  record["notes"] = notes_before(options, opened, maps, plan, write);
  return record;
}

ordered_json transport_job(const JobOptions& given, const transport::Watch& watch) {
  auto options = given;
  auto opened = open_all(options, watch);
  const auto& method = maps::method(method_word(options, opened));
  const auto write = write_word(options, &*opened.update, method);
  WorkDirectory work(options.out, identity_of(options, opened), options.fresh);
  fix_memory(options, work.path());
  auto maps = find_maps(options, opened, work.path(), watch);
  const auto plan = plan_of(options, opened, maps.route, maps.towers);
  require_something(plan);
  require_memory_for_labels(options, opened, plan);
  if (write == "adapter") {
    require_factors(plan, opened, maps.route);
  }
  std::optional<transport::Schedule> schedule;
  if (maps.aligner) {
    schedule = maps.aligner->schedule(transport::spaces_of(plan));
  }
  require_space(
      work.path(), disk_needed(write, opened.target, plan, schedule ? &*schedule : nullptr),
      "the output");

  if (opened.alignment) {
    opened.alignment->require_maps(transport::spaces_of(plan));
  }
  work.keep();
  if (mask_of(options) != gradient::Mask::kNone) {
    maps.mask.emplace(options, opened, plan, work.path(), watch);
  }
  CarriedFiles files(work.path());
  carry_all(options, opened, maps, plan, files, watch);
  files.open();

  const Assembly assembly(opened.target.architecture(), files);
  const Watch writing = [&](int64_t done, int64_t all) {
    watch(static_cast<double>(done), static_cast<double>(all), "writing");
  };
  std::optional<WrittenModel> written;
  Seconds seconds = maps.aligner ? maps.aligner->seconds() : Seconds();
  std::optional<Stopwatch> stopwatch(std::in_place, seconds, "write");
  SideFiles side;
  if (write == "model") {
    written = write_model(
        opened.target, work.staged(),
        [&](const std::string& tensor) { return assembly.delta(tensor); }, options.alpha, writing);
    side = copy_side_files(opened.target, work.staged(), {kRecordFile, kRecipeFile, kCardFile});
  } else if (write == "update") {
    write_update_file(opened, plan, assembly, work.staged(), writing);
  } else {
    write_adapter_files(options, opened, assembly, work.staged());
  }

  stopwatch.emplace(seconds, "record");
  auto record = describe_job(options, opened, maps, write);
  record["parameters"] = describe_carried(plan, files, written ? &*written : nullptr);
  record["totals"] = totals_of(record["parameters"]);
  record["update"] = describe_update(plan, opened);
  record["update"]["carried_norm"] = carried_norm(record["parameters"]);
  if (written) {
    record["rounding_loss"] = written->rounding_loss;
  }
  if (maps.mask) {
    record["mask"] = maps.mask->describe();
  }
  record["spaces"] =
      opened.alignment ? ordered_json(opened.alignment->about().at("spaces")) : files.rows();
  auto notes = notes_before(options, opened, maps, plan, write);
  for (const auto& file : side.left_out) {
    notes.push_back("not copied: " + file);
  }
  for (const auto& more :
       {notes_on_maps(record["spaces"]), notes_on_gradients(options, opened, record["spaces"]),
        maps.mask ? maps.mask->notes() : std::vector<std::string>()}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  record["notes"] = notes;
  if (schedule) {
    record["schedule"] = describe_schedule(*schedule);
  }
  write_texts(
      work.staged(), record, options.recipe,
      write == "adapter" ? "peft" : library_of(opened.target.location().family));
  work.finish();
  stopwatch.reset();
  record["seconds"] = seconds;  // for whoever waits, and not in the file: there it would differ
  return record;
}

ordered_json align_job(const JobOptions& given, const transport::Watch& watch) {
  auto options = given;
  require(
      mask_of(options) == gradient::Mask::kNone,
      "a mask is of one update, and an alignment for any; give it to 'theseus transport'");
  auto opened = open_all(options, watch);
  WorkDirectory work(options.out, identity_of(options, opened), options.fresh);
  fix_memory(options, work.path());
  auto maps = find_maps(options, opened, work.path(), watch);
  const auto plan = transport::make_plan(
      opened.source, opened.target, maps.route,
      {.norms = transport::Norms::kDiagonal, .heads = true, .towers = maps.towers});
  require_memory_for_labels(options, opened, plan);
  const auto needed = transport::spaces_of(plan);
  const auto schedule = maps.aligner->schedule(needed);
  const auto stages = work.path() / "stages";
  fs::create_directories(stages);
  int64_t bytes = 0;
  for (const auto& space : needed) {
    const auto width = opened.target.architecture().spaces.at(space).width;
    bytes += width * width * 12;
  }
  require_space(work.path(), bytes + (schedule.spill ? 2 * schedule.cost.states : 0), "the maps");
  CarriedFiles files(work.path());
  auto rows = ordered_json::array();
  work.keep();
  run_once(
      *maps.aligner, needed, work.path(),
      {.stage =
           [&](int64_t stage, const MapSet& found, const stats::Moments& moments) {
             transport::Alignment::write_stage(stages, stage, found, moments);
             for (auto& row : transport::describe(stage, found, moments)) {
               rows.push_back(std::move(row));
             }
           },
       .group =
           [&](int64_t first) {
             files.write(first, {}, rows);
             rows = ordered_json::array();
           }},
      watch, options.save_every);
  files.open();
  ordered_json record = {{"theseus", options.version}, {"options", options.words}};
  record.update(describe_inputs(options, opened));
  record["method"] = options.align.method;
  record["match"] = maps.aligner->matcher_words();
  record["towers"] = maps.towers;
  record["depth"] =
      describe_depth(maps.route, opened, options.align.depth, maps.aligner->similarity());
  record["spaces"] = files.rows();
  auto notes = notes_on_maps(record["spaces"]);
  const auto gradients = notes_on_gradients(options, opened, record["spaces"]);
  notes.insert(notes.end(), gradients.begin(), gradients.end());
  record["notes"] = notes;
  record["schedule"] = describe_schedule(schedule);
  fs::remove(work.path() / kSolvedFile);  // a process that is killed now must begin anew
  for (const auto& entry : fs::directory_iterator(stages)) {
    fs::rename(entry.path(), work.staged() / entry.path().filename());
  }
  write_text(work.staged() / kRecipeFile, options.recipe);
  transport::Alignment::write_about(work.staged(), record);
  work.finish();
  return record;
}

}  // namespace theseus::output
