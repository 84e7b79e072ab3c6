#include "theseus/evaluate/compare_check.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/identity.h"
#include "theseus/evaluate/head.h"
#include "theseus/output/opened.h"
#include "theseus/stats/prepare.h"
#include "theseus/transport/source_update.h"

namespace theseus::evaluate {
namespace {

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

// Whether as many examples as the rows ask for can be drawn, and both models can read them.
void check_calibration(
    const CompareOptions& options,
    const std::string& data,
    const std::string& split,
    const model::Model& source,
    const model::Model& target) {
  const auto& methods = options.methods;
  const auto uses = [&](const auto& method) { return uses_calibration(options, method); };
  if (stats::is_prepared(data) || std::none_of(methods.begin(), methods.end(), uses)) {
    return;
  }
  const auto examples = data::open_examples(data, split.empty() ? data::kNotTest : split);
  auto choice = output::choice_of(options.job);
  for (const auto count : counts_of(options)) {
    choice.sampling.batches = count > 0 ? count : choice.sampling.batches;
    stats::draw(examples, choice);
  }
  with_context("reading examples for the source", [&] { check_readable(source, examples); });
  with_context("reading examples for the target", [&] { check_readable(target, examples); });
}

void check_setting(
    const CompareOptions& options,
    const Setting& setting,
    Shares& shares,
    const model::Model& source,
    model::Model& target) {
  check_name(setting.name);
  const auto update = transport::SourceUpdate::open(setting.tuned, source);
  require_change(update, source.architecture());
  const auto measuring = open_measuring(target, measured_on(options, setting, shares.test));
  if (chooses(options)) {
    require(
        !make_task(measuring.word)->trains(), "no strength can be chosen by the task ",
        measuring.word, ", which trains on every one of them: give --alpha");
    open_choosing(target, measured_on(options, setting, shares.validation));
  }
  check_calibration(
      options, setting.calibration.empty() ? setting.data : setting.calibration, shares.calibration,
      source, target);
  require_apart(options, setting, measuring.examples, shares);
}

}  // namespace

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
    with_context("opening --familiar", [&] {
      check_calibration(options, options.familiar, "", source, target);
    });
  }
}

}  // namespace theseus::evaluate
