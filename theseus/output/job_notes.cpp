#include "theseus/output/job_notes.h"

#include "theseus/base/machine_notes.h"
#include "theseus/base/units.h"
#include "theseus/maps/method.h"
#include "theseus/output/added_tokens.h"
#include "theseus/output/carried_head.h"
#include "theseus/output/named_base.h"
#include "theseus/output/record.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/supervision.h"
#include "theseus/transport/kinship.h"
#include "theseus/transport/similarity.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;
using transport::Disposition;

// Of a calibration that was made from data; null: it was not.
std::vector<std::string> notes_on_drawn(const ordered_json& drawn) {
  auto notes = drawn.value("notes", std::vector<std::string>());
  if (drawn.contains("fewer")) {
    notes.push_back(drawn.at("fewer"));
  }
  if (drawn.contains("left_out_names")) {
    notes.push_back(c10::str(
        drawn.at("left_out").get<int64_t>(), " images could not be decoded and were left out: ",
        drawn.at("left_out_names").get<std::string>()));
  }
  if (drawn.contains("answers_left_out")) {
    notes.emplace_back(
        "the answers were not read: examples without --labelled are texts alone to a causal model");
  }
  if (drawn.contains("dropped_tokens") && drawn.at("dropped_tokens") > 0) {
    notes.push_back(c10::str(
        drawn.at("dropped_tokens").get<int64_t>(),
        " tokens at the end of the packed texts fill no row and were left out"));
  }
  if (drawn.contains("truncated") && drawn.at("truncated") > 0) {
    notes.push_back(c10::str(
        drawn.at("truncated").get<int64_t>(), " texts were longer than ",
        drawn.value("longest", "a model takes"), " and were cut"));
  }
  return notes;
}

}  // namespace

std::vector<std::string> notes_on_examples(const Opened& opened) {
  std::vector<std::string> notes;
  for (const auto* drawn : {&opened.drawn, &opened.labelled_drawn}) {
    const auto more = drawn->is_null() ? std::vector<std::string>() : notes_on_drawn(*drawn);
    notes.insert(notes.end(), more.begin(), more.end());
  }
  for (const auto* examples : {&opened.calibration, &opened.labelled}) {
    const auto more = *examples ? (*examples)->notes() : std::vector<std::string>();
    notes.insert(notes.end(), more.begin(), more.end());
  }
  return notes;
}

std::vector<std::string> notes_on_schedule(
    const JobOptions& options, const Opened& opened, const transport::Schedule& schedule) {
  std::vector<std::string> notes;
  const auto mapped = opened.source.checkpoint().bytes() + opened.target.checkpoint().bytes();
  if (options.words.contains("memory") && options.placement.device.is_cpu() &&
      schedule.cost.peak + mapped > options.align.memory) {
    notes.push_back(c10::str(
        "--memory ", bytes_text(options.align.memory),
        " is for what is computed; pages of the models' files (", bytes_text(mapped),
        ") come and go in memory that nothing else takes, and may count as this process's beside "
        "it"));
  }
  const auto& method = maps::method(options.align.method);
  if (options.align.maps.rank == maps::Rank::kArbitrary && method.obeys.rank && schedule.kept > 0) {
    notes.push_back(c10::str(
        "rank=arbitrary: the rows of ", schedule.kept,
        " spaces are kept, and what they leave open is filled in as rank=complete does without "
        "what it knows of other spaces; statistics=moments fills it in arbitrarily"));
  }
  if (options.placement.device.is_cuda() && !options.words.contains("memory")) {
    notes.push_back(c10::str(
        "groups were made to fit what is free on the host; if ", options.placement.device,
        " has less, say how much with --memory"));
  }
  return notes;
}

std::vector<std::string> notes_before(
    const JobOptions& options,
    const Opened& opened,
    const Maps& maps,
    const std::vector<Disposition>& plan,
    const std::string& write) {
  const auto& source = opened.source.architecture();
  const auto& target = opened.target.architecture();
  std::vector<std::string> notes;
  if (!options.source_note.empty()) {
    notes.push_back(options.source_note);
  }
  if (opened.update) {
    const auto other = note_on_another_base(options.tuned, opened.source);
    notes.insert(notes.end(), other.empty() ? 0 : 1, other);
    const auto about = opened.update->notes();
    notes.insert(notes.end(), about.begin(), about.end());
    const auto kinship = transport::notes_on_kinship(transport::kinship_of(*opened.update, source));
    notes.insert(notes.end(), kinship.begin(), kinship.end());
    const auto left = notes_on_update(plan, opened);
    notes.insert(notes.end(), left.begin(), left.end());
  }
  const auto machine = machine_notes(options.placement.device, options.placement.dtype);
  notes.insert(notes.end(), machine.begin(), machine.end());
  if (write == "model") {
    const auto added = added_tokens(options, opened).notes;
    notes.insert(notes.end(), added.begin(), added.end());
  } else if (opened.update && opened.update->added_rows() > 0) {
    notes.push_back(added_tokens(options, opened).notes.front());  // the others are of a model
  }
  if (const auto head = carry_sentence_head(options, opened)) {
    notes.push_back(c10::str(
        "the head that lies beside the tuned encoder comes with it, through the alignment's map of "
        "what it reads",
        head->classes.empty() ? "; nobody names its classes" : ""));
  } else if (has_sentence_head(options.tuned)) {
    notes.emplace_back(
        "the head that lies beside the tuned encoder is not carried: that needs an --alignment "
        "with a map of what it "
        "reads, and a target without a head");
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
  if (maps.aligner) {
    const auto more =
        notes_on_schedule(options, opened, maps.aligner->schedule(transport::spaces_of(plan)));
    notes.insert(notes.end(), more.begin(), more.end());
  }
  const auto drawn = notes_on_examples(opened);
  notes.insert(notes.end(), drawn.begin(), drawn.end());
  const auto labels = notes_on_labels(options, opened, plan);
  notes.insert(notes.end(), labels.begin(), labels.end());
  if (write == "update" && options.words.contains("alpha")) {
    notes.emplace_back("--alpha makes no difference to --write update, which is not scaled");
  }
  return notes;
}

}  // namespace theseus::output
