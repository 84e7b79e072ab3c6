#include "theseus/evaluate/compare_inputs.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/identity.h"
#include "theseus/data/part.h"
#include "theseus/evaluate/head.h"
#include "theseus/output/sentence_head.h"
#include "theseus/stats/prepare.h"
#include "theseus/transport/source_update.h"

namespace theseus::evaluate {
namespace {

constexpr int64_t kTest = 80, kValidation = 60;  // of undivided data: from this hundredth on
constexpr int64_t kLearnt = 80;                  // of a train split without val: up to this one

bool all_none(const CompareOptions& options) {
  return std::all_of(options.methods.begin(), options.methods.end(), [](const auto& method) {
    return method == kNone;
  });
}

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

int64_t count_shared(const data::Examples& used, const data::Identities& measured) {
  const auto places = data::places_of(used);
  return std::count_if(
      places.begin(), places.end(), [&](const auto& place) { return measured.contains(place); });
}

// Where nobody named the shares for it, what is measured must not have been used.
void require_apart(
    const CompareOptions& options,
    const Setting& setting,
    const data::Examples& measured,
    Shares& shares) {
  const auto kept_out = data::places_of(measured);
  const auto require_none = [&](const data::Examples& used, const char* what, const char* instead) {
    const auto count = count_shared(used, kept_out);
    require(
        count == 0, count, " examples of ", setting.data, " would be measured on and ", what, ": ",
        instead);
  };
  if (chooses(options)) {
    require_none(
        data::open_examples(setting.data, shares.validation), "used to choose strengths",
        "name another split with --validation or --test");
  }
  if (all_none(options)) {
    return;
  }
  const auto& from = setting.calibration.empty() ? setting.data : setting.calibration;
  if (!stats::is_prepared(from)) {
    const auto used =
        data::open_examples(from, shares.calibration.empty() ? data::kNotTest : shares.calibration);
    if (options.job.split.empty() && setting.calibration.empty()) {
      require_none(used, "used to make maps", "name another split with --split or --test");
    } else if (const auto count = count_shared(used, kept_out); count > 0) {
      shares.note += c10::str(
          shares.note.empty() ? "" : "; ", count,
          " of the examples that are measured on were used to make maps, too");
    }
  }
  if (!options.familiar.empty() && !stats::is_prepared(options.familiar)) {
    require_none(
        data::open_examples(options.familiar, data::kNotTest), "familiar",
        "give others as --familiar");
  }
}

void check_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c >= ' ' && c != '/' && c != '|' && c != 127;
  });
  require(
      plain && !name.empty() && name.front() != '.', "--setting: '", printable(name),
      "' cannot name a column and its files; use letters and digits");
}

void check_setting(
    const CompareOptions& options,
    const Setting& setting,
    Shares& shares,
    const model::Model& source,
    const model::Model& target) {
  check_name(setting.name);
  const auto update = transport::SourceUpdate::open(setting.tuned, source);
  require_change(update, source.architecture());
  const auto how = measured_on(options, setting, shares.test);
  const auto examples = open_data(setting.data, shares.test, target, how);
  const auto word = task_word(target, examples, how);
  if (chooses(options)) {
    require(
        !make_task(word)->trains(), "no strength can be chosen by the task ", word,
        ", which trains on every one of them: give --alpha");
    open_data(setting.data, shares.validation, target, options.evaluate);
  }
  require_apart(options, setting, examples, shares);
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

void check_inputs(const CompareOptions& options, std::vector<Shares>& shares) {
  const auto source =
      with_context("opening the source", [&] { return model::Model::open(options.job.source); });
  auto target =
      with_context("opening the target", [&] { return model::Model::open(options.job.target); });
  take_own_head(target);
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto& setting = options.settings[i];
    with_context("opening the setting " + setting.name, [&] {
      check_setting(options, setting, shares[i], source, target);
    });
  }
  const auto imitates = std::find(options.methods.begin(), options.methods.end(), kImitate);
  require(
      imitates == options.methods.end() || !options.familiar.empty(),
      "imitate needs examples that both bases read well, beside those of each setting: give "
      "--familiar DATA");
  require(
      options.familiar.empty() || imitates != options.methods.end(),
      "--familiar is for the method imitate, which is none of these");
  if (!options.familiar.empty() && !stats::is_prepared(options.familiar)) {
    with_context(
        "opening --familiar", [&] { data::open_examples(options.familiar, data::kNotTest); });
  }
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
