#include "theseus/evaluate/compare_inputs.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/data/part.h"
#include "theseus/maps/method.h"
#include "theseus/output/method_words.h"
#include "theseus/output/named_base.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/supervision.h"
#include "theseus/transport/depth.h"

namespace theseus::evaluate {
namespace {

constexpr int64_t kTest = 80, kValidation = 60;  // of undivided data: from this hundredth on
constexpr int64_t kLearnt = 80;                  // of a train split without val: up to this one

std::string split_text(const std::string& split) {
  return split.empty() ? "the whole of the data" : "the " + split + " split";
}

// One file, or one folder: all three shares are parts of it.
Shares divided(const std::string& data, const std::string& split, const CompareOptions& options) {
  const bool choosing = chooses(options);
  const auto part = [&](int64_t first, int64_t last) {
    return data::part_words({split, first, last, options.evaluate.seed});
  };
  Shares shares{
      .calibration = part(0, choosing ? kValidation : kTest),
      .validation = part(kValidation, kTest),
      .test = part(kTest, 100)};
  shares.note = c10::str(
      data, split.empty() ? " is not divided" : " has only a " + split + " split",
      ": scores are of 20 % of it, ", choosing ? "strengths were chosen on another 20 %, " : "",
      "maps were made from the rest, drawn by seed ", options.evaluate.seed);
  return shares;
}

}  // namespace

EvaluateOptions measured_on(
    const CompareOptions& options, const Setting& setting, const std::string& split) {
  auto how = options.evaluate;
  how.data = setting.data;
  how.split = split;
  how.feed.pack = how.task.empty() || how.task == "perplexity" ? options.job.pack : 0;
  return how;
}

// Whether a method looks at examples at all, or the match of its blocks does.
bool uses_calibration(const CompareOptions& options, const std::string& method) {
  if (method == kNone || method == kImitate) {
    return method == kImitate;
  }
  auto job = options.job;
  output::set_method(method, job);
  if (output::method_of(method).needs.moments || output::needs_labels(job)) {
    return true;
  }
  const auto source = model::Model::open(job.source), target = model::Model::open(job.target);
  return job.align.depth != transport::Depth::kStretch &&
         transport::depths_differ(source.architecture(), target.architecture());
}

std::vector<int64_t> counts_of(const CompareOptions& options) {
  return options.batches.empty() ? std::vector<int64_t>{0} : options.batches;
}

bool all_none(const CompareOptions& options) {
  return std::all_of(options.methods.begin(), options.methods.end(), [](const auto& method) {
    return method == kNone;
  });
}

bool chooses(const CompareOptions& options) {
  return options.strengths.last > options.strengths.first && !all_none(options);
}

Shares shares_of(const CompareOptions& options, const Setting& setting) {
  const auto& data = setting.data;
  Shares shares{.calibration = options.job.split};
  const bool named = options.test && (options.validation || !chooses(options));
  if (!named) {
    const auto splits = [&](const char* asked) { return data::open_examples(data, asked).split; };
    const auto test = splits(""), learnt = splits(data::kNotTest);
    const bool has_val = splits(data::kValidation) == "val";
    const bool whole = test == learnt;  // there is one split, or none
    require(
        !whole || (!options.test && !options.validation) || !options.job.split.empty() ||
            !setting.calibration.empty(),
        data, test.empty() ? " is not divided" : " has only a " + test + " split",
        ": name the parts for all of --split, --validation and --test, as in '", test,
        "[0:60]', or none of them");
    if (whole && setting.calibration.empty() && options.job.split.empty() && !options.test) {
      shares = divided(data, test, options);
    } else {
      shares.test = test;
      shares.validation = has_val && test != "val" ? "val" : "";
    }
    if (shares.validation.empty() && chooses(options) && !options.validation) {
      require(
          learnt == "train" && options.job.split.empty(), data,
          " has no val split to choose strengths on; name one with --validation, or give --alpha");
      shares.calibration = data::part_words({learnt, 0, kLearnt, options.evaluate.seed});
      shares.validation = data::part_words({learnt, kLearnt, 100, options.evaluate.seed});
      shares.note = c10::str(
          data,
          " has no val split: strengths were chosen on 20 % of its train split, which the "
          "maps were not made from, drawn by seed ",
          options.evaluate.seed);
    }
  }
  shares.test = options.test.value_or(shares.test);
  shares.validation = options.validation.value_or(shares.validation);
  return shares;
}

std::vector<std::string> notes_on_shares(
    const CompareOptions& options, const std::vector<Shares>& shares) {
  const auto words = [&](const Shares& share) {
    const auto scores = "scores are of " + split_text(share.test);
    if (chooses(options)) {
      return "strengths were chosen on " + split_text(share.validation) + ", " + scores;
    }
    return all_none(options) ? scores
                             : c10::str("strength ", options.strengths.first, ", ", scores);
  };
  std::vector<std::string> notes;
  const auto source = model::Model::open(options.job.source);
  const bool same = std::all_of(shares.begin(), shares.end(), [&](const auto& share) {
    return words(share) == words(shares.front());
  });
  for (size_t i = 0; i < (same ? 1 : shares.size()); ++i) {
    notes.push_back((same ? "" : options.settings[i].name + ": ") + words(shares[i]));
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i].note.empty()) {
      notes.push_back(options.settings[i].name + ": " + shares[i].note);
    }
    const auto other = output::note_on_another_base(options.settings[i].tuned, source);
    if (!other.empty() && !all_none(options)) {
      notes.push_back(options.settings[i].name + ": " + other);
    }
    if (output::has_sentence_head(options.settings[i].tuned)) {
      notes.push_back(
          options.settings[i].name +
          ": the head beside the tuned encoder is not used; 'theseus transport --alignment' "
          "carries it");
    }
  }
  return notes;
}

}  // namespace theseus::evaluate
