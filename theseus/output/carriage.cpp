#include "theseus/output/carriage.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/side_by_side.h"
#include "theseus/base/stopwatch.h"
#include "theseus/output/added_tokens.h"
#include "theseus/output/assembly.h"
#include "theseus/output/carried_head.h"
#include "theseus/output/class_names.h"
#include "theseus/output/config_file.h"
#include "theseus/output/follow.h"
#include "theseus/output/job_notes.h"
#include "theseus/output/method_words.h"
#include "theseus/output/model_card.h"
#include "theseus/output/plan_of.h"
#include "theseus/output/record.h"
#include "theseus/output/result.h"
#include "theseus/output/side_files.h"
#include "theseus/output/space.h"
#include "theseus/output/supervision.h"
#include "theseus/output/text_file.h"
#include "theseus/output/written.h"
#include "theseus/transport/alignment.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using transport::Disposition;
using transport::MapSet;

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

Deltas deltas_of(const Assembly& assembly) {
  return [&](const std::string& tensor) { return assembly.delta(tensor); };
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

void write_texts(
    const fs::path& directory,
    const ordered_json& record,
    const std::string& recipe,
    const std::string& library) {
  write_text(directory / kRecipeFile, recipe);
  auto card = record;
  for (const char* key : {"parameters", "spaces", "schedule", "depth"}) {
    card.erase(key);
  }
  card["update"].erase("left_behind");
  write_model_card(directory, card, library);
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
  if (maps.method->needs.moments) {  // else no model runs
    record["dtype"] = opened.alignment ? opened.alignment->about().value("dtype", "float32")
                                       : dtype_word(options.placement);
  }
  record["threads"] = at::get_num_threads();  // the last bits of sums depend on it
  add_processes(options, record);
  record["depth"] =
      opened.alignment
          ? ordered_json(opened.alignment->about().at("depth"))
          : describe_depth(maps.route, opened, options.align.depth, maps.aligner->similarity());
  if (maps.aligner) {
    record["tokens"] = maps.aligner->matcher_words();
  }
  return record;
}

}  // namespace

Carriage::Carriage(const JobOptions& options, const transport::Watch& watch)
    : options_(options),
      warming_(warming(options_)),
      opened_(open_all(options_, watch)),
      write_(write_word(options_, &*opened_.update, method_of(method_word(options_, opened_)))) {
  const Identity identity = [this] { return identity_of(options_, opened_); };
  delivered_ = find_finished(options_.out, identity, options_.fresh);
  if (!is_finished(options_, !delivered_.is_null())) {
    work_.emplace(options_.out, identity, options_.fresh);
    files_.emplace(work_->path());
    begin(watch);
  }
}

void Carriage::begin(const transport::Watch& watch) {
  fix_memory(options_, work_->path());
  maps_.emplace(find_maps(options_, opened_, work_->path(), watch));
  plan_ = plan_of(options_, opened_, maps_->route, maps_->towers);
  require_something(opened_, plan_);
  require_memory_for_labels(options_, opened_, plan_);
  if (write_ == "adapter" && options_.lora == 0) {
    require_factors(plan_, opened_, maps_->route);
  }
  if (maps_->aligner) {
    maps_->aligner->set_loads(transport::loads_of(plan_, &*opened_.update));
    schedule_ = maps_->aligner->schedule(transport::spaces_of(plan_));
  }
  require_space(
      work_->path(),
      disk_needed(
          options_.lora > 0 ? "update" : write_, options_.output_dtype, opened_.target, plan_,
          schedule_ ? &*schedule_ : nullptr),
      "the output");
  if (opened_.alignment) {
    opened_.alignment->require_maps(transport::spaces_of(plan_));
  }
  work_->keep();
  // Hashing takes the host a while, in which a GPU can work.
  hashing_.emplace(device());
  hashing_->run([this] { work_->identify(); });
  if (mask_of(options_) != gradient::Mask::kNone) {
    maps_->mask.emplace(options_, opened_, plan_, work_->path(), watch);
  }
  carrier_.emplace(
      *opened_.update, opened_.source.architecture(), maps_->route, plan_, maps_->method->carries,
      options_.align.sampling.seed);
}

void Carriage::align_and_carry(const transport::Watch& watch) {
  if (writes_as_it_goes()) {
    prepare_writer(nullptr);
  }
  const transport::Sink sink{
      .stage =
          [&](int64_t stage, const MapSet& found, const stats::Moments& moments) {
            carrier_->carry(stage, found, group_);
            for (auto& row : transport::describe(stage, found, moments)) {
              rows_.push_back(std::move(row));
            }
          },
      .group = [&](int64_t first, int64_t last) { return end_group(first, last); },
      .begin =
          [&](int64_t first) {
            files_->drop_from(first);
            CarriedFiles(work_->path())
                .open(first);  // what is damaged is said before hours of work
            work_->went_on_at(stage_words(first, *maps_->aligner));
          },
      .sync =
          [&] {
            hashing_->wait();  // what is saved is somebody's
            files_->sync();
          }};
  work_->attempt([&] {
    run_once(
        *maps_->aligner, transport::spaces_of(plan_), files_->directory(), sink, watch,
        options_.save_every);
  });
}

void Carriage::carry(int64_t stage, const MapSet& found) {
  carrier_->carry(stage, found, group_);
  const auto& pairs = maps_->route.pairs;
  const bool more =
      stage > 0 && stage + 2 < stages() &&
      pairs[static_cast<size_t>(stage)].target == pairs[static_cast<size_t>(stage - 1)].target;
  if (!more) {
    end_group(files_->end(), stage + 1)();
  }
}

bool Carriage::writes_as_it_goes() const {
  return options_.output_dtype != OutputDtype::kAuto || !has_halves(layout_of(opened_.target));
}

void Carriage::prepare_writer(const Assembly* assembly) {
  if (write_ != "model" || writer_) {
    return;
  }
  storage_ = choose_storage(opened_.target, options_.output_dtype, [&](const ModelLayout& layout) {
    return try_adding(opened_.target, layout, deltas_of(*assembly), options_.alpha);
  });
  writer_.emplace(opened_.target, work_->staged(), options_.alpha, storage_->layout);
}

Addition Carriage::addition_of(
    const Assembly& assembly, const std::optional<WrittenModel>& written) const {
  if (written) {
    return written->addition;
  }
  // An adapter is applied to activations in float32 at best, and nobody knows the strength of an update yet.
  const auto layout = with_dtype(layout_of(opened_.target), OutputDtype::kFloat32);
  return try_adding(
      opened_.target, layout, deltas_of(assembly), write_ == "update" ? 1 : options_.alpha);
}

std::function<void()> Carriage::end_group(int64_t first, int64_t last) {
  return [this, first, last, group = std::exchange(group_, {}),
          rows = std::exchange(rows_, ordered_json::array())]() mutable {
    store(first, last, std::move(group), rows);
  };
}

// What a job goes on from, and of the output what is known by now: the blocks that the group brought.
void Carriage::store(int64_t first, int64_t last, Group group, const ordered_json& rows) {
  if (maps_->mask) {
    maps_->mask->apply(group);
  }
  files_->write(first, last, group, rows);
  if (!writer_) {
    return;
  }
  const auto& target = opened_.target.architecture();
  std::set<std::string> tensors, later;
  for (const auto& parameter : target.parameters) {
    if (const auto found = group.find(parameter.name); found != group.end()) {
      // Factors are multiplied out at the end, with all threads: their number decides how products are rounded.
      const bool now = parameter.block != model::kOuter && !found->second.factors;
      (now ? tensors : later).insert(parameter.tensor);
    }
  }
  for (const auto& tensor : later) {
    tensors.erase(tensor);
  }
  group.clear();
  CarriedFiles files(files_->directory());
  files.open_group(first);
  const Assembly assembly(target, files);
  writer_->write(tensors, deltas_of(assembly));
}

ordered_json Carriage::deliver(const transport::Watch& watch) {
  files_->open(stages());
  const Assembly assembly(opened_.target.architecture(), *files_);
  const Watch writing = [&](int64_t done, int64_t all) {
    watch(static_cast<double>(done), static_cast<double>(all), "writing");
  };
  std::optional<WrittenModel> written;
  Seconds seconds = maps_->aligner ? maps_->aligner->seconds() : Seconds();
  std::optional<Stopwatch> stopwatch(std::in_place, seconds, "write");
  SideFiles side;
  std::vector<std::string> corrected;
  ordered_json adapter;
  const auto head = carry_sentence_head(options_, opened_);
  if (head) {
    write_sentence_head(*head, work_->staged());
  }
  if (write_ == "model") {
    watch(0, 1, "choosing the dtype");
    prepare_writer(&assembly);
    written = writer_->finish(deltas_of(assembly), writing);
    if (added_tokens(options_, opened_).fits) {
      copy_tokenizer(options_.tuned, work_->staged());
    }
    side = copy_side_files(opened_.target, work_->staged(), {kRecordFile, kRecipeFile, kCardFile});
    corrected = set_config_dtype(opened_.target, work_->staged(), dtype_name(storage_->written));
    const auto classes = keep_class_names(
        options_, opened_, plan_, head ? head->classes : std::vector<std::string>(),
        work_->staged());
    corrected.insert(corrected.end(), classes.begin(), classes.end());
  } else if (write_ == "update") {
    write_update_file(opened_, plan_, assembly, work_->staged(), writing);
  } else {
    adapter = write_adapter_files(options_, opened_, assembly, work_->staged());
  }

  const auto addition = addition_of(assembly, written);
  work_->check_result([&] {
    if (write_ == "update") {
      require_not_zero(addition);
    } else {
      require_arrival(addition, options_.alpha, storage_ ? storage_->written : at::kFloat);
    }
  });

  stopwatch.emplace(seconds, "record");
  auto record = describe_job(options_, opened_, *maps_, write_);
  record["parameters"] = describe_carried(plan_, *files_, written ? &*written : nullptr);
  record["totals"] = totals_of(record["parameters"]);
  record["update"] = describe_update(plan_, opened_);
  record["update"]["carried_norm"] = carried_norm(record["parameters"]);
  if (written) {
    record["output_dtype"] = describe_storage(*storage_, addition.lost());
  }
  if (!adapter.is_null()) {
    record["adapter"] = adapter;
  }
  if (maps_->mask) {
    record["mask"] = maps_->mask->describe();
  }
  record["spaces"] =
      opened_.alignment ? ordered_json(opened_.alignment->about().at("spaces")) : files_->rows();
  auto notes = notes_on_size(addition);
  if (written) {
    const auto stored = notes_on_storage(*storage_, addition.lost());
    notes.insert(notes.end(), stored.begin(), stored.end());
  }
  for (const auto& more :
       {corrected, notes_on_adapter(adapter),
        notes_before(options_, opened_, *maps_, plan_, write_)}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  for (const auto& file : side.left_out) {
    notes.push_back("not copied: " + file);
  }
  for (const auto& more :
       {notes_on_maps(record["spaces"]), notes_on_gradients(options_, opened_, record["spaces"]),
        maps_->mask ? maps_->mask->notes() : std::vector<std::string>()}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  record["notes"] = notes;
  if (schedule_) {
    record["schedule"] = describe_schedule(*schedule_, options_.placement.device);
  }
  write_texts(
      work_->staged(), record, options_.recipe,
      write_ == "adapter" ? "peft" : library_of(opened_.target.location().family));
  hashing_->wait();
  work_->finish(kRecordFile, record);
  stopwatch.reset();
  record["seconds"] = seconds;  // for whoever waits, and not in the file: there it would differ
  return record;
}

ordered_json find_delivered(const JobOptions& options, const transport::Watch& watch) {
  if (options.fresh || find_listed(options.out).record.is_null()) {
    return nullptr;  // without opening the inputs
  }
  const auto opened = open_all(options, watch);
  return find_finished(
      options.out, [&] { return identity_of(options, opened); }, options.fresh);
}

}  // namespace theseus::output
