#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/data/examples.h"
#include "theseus/gradient/signs.h"
#include "theseus/output/output_dtype.h"
#include "theseus/transport/aligner.h"
#include "theseus/transport/plan.h"

namespace theseus::output {

// Everything that decides the result of a transport.
struct JobOptions {
  std::filesystem::path source, tuned, target, calibration, alignment, out;
  std::string source_note;  // where the source was not given: which was taken, and why
  std::string split;        // of a calibration from data
  int64_t shots = 0;        // of each class, of a calibration from data; 0: as align.sampling says
  int64_t longest = 0;      // ids of a text, of a calibration from data; 0: what the models take
  int64_t pack = 0;         // rows of so many ids, of a calibration from texts; 0: one text a row
  data::Wording wording = {"", "", ""};  // of a calibration from texts; empty parts: the data's own
  // What a model should say to the examples is used, too. Never without being asked for: a method that
  // needs no labels is not told them.
  bool labels = false;
  std::filesystem::path labelled;      // with `labels`: others than the calibration's; empty: those
  std::vector<std::string> templates;  // prompts for class names; empty: those of the data
  gradient::Mask mask = gradient::Mask::kNone;  // on what is carried; a method may bring its own
  gradient::Vote vote = gradient::Vote::kMean;
  transport::AlignOptions align;
  transport::Norms norms = transport::Norms::kDiagonal;
  bool heads = false;
  bool partial = false;  // leave behind what the calibration does not reach
  double alpha = 1;
  std::string
      write;  // model, update, adapter; empty: adapter for an adapter or with `lora`, else model
  int64_t lora = 0;  // of an adapter: its rank; 0: that of the factors that are carried
  OutputDtype output_dtype = OutputDtype::kAuto;  // of a model
  bool fresh = false;
  double save_every = 20;  // seconds between two times that unfinished work is saved
  model::Placement placement;
  nlohmann::ordered_json words;  // the options as they were given, for the record
  std::string version;
  std::string recipe;  // YAML that repeats this job
};

// What a job would do, with nothing written: dispositions, route, schedule, costs, notes.
nlohmann::ordered_json plan_job(const JobOptions& options, const transport::Watch& watch);

// From old base, tuned model and new base to the tuned new base in options.out. With
// options.alignment the maps are read, else they are made.
nlohmann::ordered_json transport_job(const JobOptions& options, const transport::Watch& watch);

// Several updates through one alignment, each as transport_job would carry it. An output that the same job
// has written already is left as it is, and its record has `there_before`. Throws InputError as
// transport_job does, with what came before it written.
std::vector<nlohmann::ordered_json> transport_jobs(
    const std::vector<JobOptions>& jobs, const transport::Watch& watch);

// The maps alone, for any number of updates.
nlohmann::ordered_json align_job(const JobOptions& options, const transport::Watch& watch);

}  // namespace theseus::output
