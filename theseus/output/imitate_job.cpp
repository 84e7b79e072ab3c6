#include "theseus/output/imitate_job.h"

#include <chrono>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/machine_notes.h"
#include "theseus/checkpoint/checked.h"
#include "theseus/machine/suggest.h"
#include "theseus/output/config_file.h"
#include "theseus/output/job_notes.h"
#include "theseus/output/model_card.h"
#include "theseus/output/named_base.h"
#include "theseus/output/opened.h"
#include "theseus/output/side_files.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"
#include "theseus/output/write_model.h"
#include "theseus/output/write_update.h"
#include "theseus/transport/kinship.h"

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

constexpr const char* kAbout = "about";  // JSON as bytes: a file is written whole, two are not

void save(const transport::Imitation& found, const std::filesystem::path& file) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [tensor, delta] : found.deltas) {
    tensors.emplace_back("delta/" + tensor, delta);
  }
  auto text = ordered_json{{"blocks", found.blocks}, {"layers", describe_layers(found)}}.dump();
  tensors.emplace_back(
      kAbout, at::from_blob(text.data(), {static_cast<int64_t>(text.size())}, at::kByte).clone());
  checkpoint::write_checked(file, tensors);
}

// What an earlier process saved; nothing where there is none.
transport::Imitation saved_in(const std::filesystem::path& file) {
  transport::Imitation found;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return found;
  }
  return with_context("going on with unfinished work", [&] {
    const auto saved = checkpoint::open_checked(file);
    const auto bytes = saved.tensor(kAbout).contiguous();
    const auto about = ordered_json::parse(
        std::string_view(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()));
    for (const auto& info : saved.tensors()) {
      if (info.name != kAbout) {
        found.deltas[info.name.substr(info.name.find('/') + 1)] = saved.tensor(info.name).clone();
      }
    }
    for (const auto& layer : about.at("layers")) {
      found.layers.push_back(
          {.module = layer.at("module"),
           .source_block = layer.at("source_block"),
           .wanted = layer.at("wanted"),
           .share = layer.at("share")});
    }
    found.blocks = about.at("blocks");
    return found;
  });
}

// The fit, which goes on from what lies in `work`.
transport::Imitation fitted(
    const ImitateJob& given,
    Opened& opened,
    const std::vector<const stats::Calibration*>& calibrations,
    WorkDirectory& work,
    const transport::Watch& watch) {
  using Clock = std::chrono::steady_clock;
  const auto file = work.path() / kImitatedFile;
  auto last = Clock::now();
  const transport::ImitateMemory memory{
      .watch =
          [&](int64_t done, int64_t all) {
            watch(static_cast<double>(done), static_cast<double>(all), "fitting blocks");
          },
      .save =
          [&](const transport::Imitation& so_far) {
            const auto now = Clock::now();
            if (std::chrono::duration<double>(now - last).count() >= given.job.save_every) {
              work.keep();
              save(so_far, file);
              last = now;
            }
          },
      .known = work.resumed() ? saved_in(file) : transport::Imitation()};
  work.went_on_at(c10::str("block ", memory.known.blocks + 1));
  return transport::imitate(
      opened.source, *opened.update, opened.target, calibrations, given.fit, memory);
}

// Adds to the record what became of the change.
void write_tensors(
    const ImitateJob& given,
    const Opened& opened,
    const transport::Imitation& found,
    WorkDirectory& work,
    ordered_json& record) {
  const auto& directory = work.staged();
  const Deltas deltas = [&](const std::string& tensor) {
    const auto delta = found.deltas.find(tensor);
    return delta == found.deltas.end() ? at::Tensor() : delta->second;
  };
  const auto& target = opened.target;
  const auto note = [&](const std::vector<std::string>& notes) {
    for (const auto& text : notes) {
      record["notes"].push_back(text);
    }
  };
  const auto added_to = [&](const ModelLayout& layout) {
    return try_adding(target, layout, deltas, given.job.write == "update" ? 1 : given.job.alpha);
  };
  if (given.job.write == "update") {
    const auto addition = added_to(with_dtype(layout_of(target), OutputDtype::kFloat32));
    work.check_result([&] { require_not_zero(addition); });
    note(notes_on_size(addition));
    std::vector<UpdateEntry> entries;
    for (const auto& [tensor, delta] : found.deltas) {
      entries.push_back({.tensor = tensor, .shape = delta.sizes().vec()});
    }
    write_update(directory, entries, deltas);
    return;
  }
  const auto storage = choose_storage(target, given.job.output_dtype, added_to);
  const auto written = write_model(target, directory, deltas, given.job.alpha, {}, storage.layout);
  work.check_result([&] { require_arrival(written.addition, given.job.alpha, storage.written); });
  copy_side_files(target, directory, {kRecordFile, kRecipeFile, kCardFile});
  record["output_dtype"] = describe_storage(storage, written.addition.lost());
  note(notes_on_size(written.addition));
  note(notes_on_storage(storage, written.addition.lost()));
  note(set_config_dtype(target, directory, dtype_name(storage.written)));
}

}  // namespace

ordered_json imitate_job(const ImitateJob& given, const transport::Watch& watch) {
  const auto& job = given.job;
  require(
      job.write == "model" || job.write == "update", "--write: '", job.write,
      "' is none of: model update", machine::did_you_mean(job.write, "model update"));
  require(
      job.write == "model" || !job.words.contains("output-dtype"),
      "--output-dtype is for a model, and this job writes an update; give --write model");
  require(!job.calibration.empty(), "imitation needs examples of the new kind: give --examples");
  auto opened = open_all(job, watch);
  std::vector<const stats::Calibration*> calibrations = {opened.find_calibration()};
  std::optional<Opened> familiar;
  if (!given.familiar.empty()) {
    auto other = job;
    other.calibration = given.familiar;
    familiar.emplace(open_all(other, watch));
    calibrations.push_back(familiar->find_calibration());
  }
  const Identity identity = [&] {
    auto found = identity_of(job, opened);
    if (familiar) {
      found["inputs"]["the familiar examples"] = familiar->drawn.is_null()
                                                     ? ordered_json(hash_of_file(given.familiar))
                                                     : familiar->drawn.at("fingerprint");
    }
    return found;
  };
  if (auto there = find_finished(job.out, identity, job.fresh); !there.is_null()) {
    return there;
  }
  WorkDirectory work(job.out, identity, job.fresh);
  work.identify();
  const auto found = work.attempt([&] { return fitted(given, opened, calibrations, work, watch); });
  require(!found.layers.empty(), "the examples reach no layer that could be fitted");
  ordered_json record = {{"theseus", job.version}, {"options", job.words}};
  record.update(describe_inputs(job, opened));
  if (familiar) {
    record["familiar"] = describe_inputs(job, *familiar).at("examples");
  }
  record["method"] = "imitate";
  record["alpha"] = job.alpha;
  record["write"] = job.write;
  record["device"] = c10::str(job.placement.device);
  record["threads"] = at::get_num_threads();
  record["layers"] = describe_layers(found);
  record["notes"] = opened.update->notes();
  if (!job.source_note.empty()) {
    record["notes"].push_back(job.source_note);
  }
  if (const auto other = note_on_another_base(job.tuned, opened.source); !other.empty()) {
    record["notes"].push_back(other);
  }
  for (const auto& note : transport::notes_on_kinship(
           transport::kinship_of(*opened.update, opened.source.architecture()))) {
    record["notes"].push_back(note);
  }
  for (const auto& note : notes_on_examples(opened)) {
    record["notes"].push_back(note);
  }
  if (familiar) {
    for (const auto& note : notes_on_examples(*familiar)) {
      record["notes"].push_back("--familiar: " + note);
    }
  } else {
    record["notes"].push_back(
        "no --familiar examples: the map between the models saw only inputs of the new kind, which "
        "the bases may read badly");
  }
  for (const auto& note : machine_notes(job.placement.device, job.placement.dtype)) {
    record["notes"].push_back(note);
  }
  work.keep();
  write_tensors(given, opened, found, work, record);
  write_text(work.staged() / kRecipeFile, job.recipe);
  auto card = record;
  card.erase("layers");
  write_model_card(work.staged(), card, library_of(opened.target.location().family));
  work.finish(kRecordFile, record);
  return record;
}

}  // namespace theseus::output
