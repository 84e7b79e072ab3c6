#include "theseus/output/method_words.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/machine/suggest.h"
#include "theseus/output/supervision.h"

namespace theseus::output {
namespace {

// What an option says, by words; the first is what holds without it.
template <class Value>
using Choices = std::span<const std::pair<const char*, Value>>;

constexpr std::array<std::pair<const char*, maps::Rank>, 3> kRanks = {
    {{"complete", maps::Rank::kComplete},
     {"arbitrary", maps::Rank::kArbitrary},
     {"truncate", maps::Rank::kTruncate}}};
constexpr std::array<std::pair<const char*, transport::Statistics>, 3> kStatistics = {
    {{"auto", transport::Statistics::kAuto},
     {"moments", transport::Statistics::kMoments},
     {"rows", transport::Statistics::kRows}}};

template <class Value>
Value choice_named(const std::string& option, const std::string& word, Choices<Value> choices) {
  std::string known;
  for (const auto& [name, value] : choices) {
    if (name == word) {
      return value;
    }
    known.append(known.empty() ? "" : " ").append(name);
  }
  throw InputError(
      c10::str(option, "='", word, "' is none of: ", known, machine::did_you_mean(word, known)));
}

template <class Value>
std::string name_of_choice(const std::string& option, Value value, Choices<Value> choices) {
  for (const auto& [name, known] : choices) {
    if (known == value) {
      return name == choices.front().first ? "" : ":" + option + "=" + name;
    }
  }
  throw InternalError("a choice without a word");
}

double number_of(const std::string& option, const std::string& text) {
  size_t used = 0;
  double number = NAN;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  require(
      used > 0 && used == text.size() && std::isfinite(number), option, "='", text,
      "' is not a number");
  return number;
}

// Whether a method heeds an option. One that would be ignored is a misunderstanding.
using Heeds = bool (*)(const maps::Method& method);

bool uses_activations(const maps::Method& method) {
  return method.needs.moments;
}

struct Option {
  Heeds heeds = nullptr;  // none: every method does
  bool bare = false;      // takes no value
  std::function<void(const std::string& value)> set;
};

std::map<std::string, Option> options_of(JobOptions& job) {
  auto& maps = job.align.maps;
  return {
      {"center", {uses_activations, true, [&](const auto&) { maps.center = true; }}},
      {"stream",
       {[](const maps::Method& method) { return method.needs.moments && !method.needs.gradients; },
        true, [&](const auto&) { maps.stream = true; }}},
      {"whiten",
       {[](const maps::Method& method) { return method.obeys.whiten; }, false,
        [&](const auto& value) { maps.whiten = number_of("whiten", value); }}},
      {"ridge",
       {[](const maps::Method& method) { return method.obeys.ridge; }, false,
        [&](const auto& value) { maps.ridge = number_of("ridge", value); }}},
      {"rank",
       {[](const maps::Method& method) { return method.obeys.rank; }, false,
        [&](const auto& value) { maps.rank = choice_named<maps::Rank>("rank", value, kRanks); }}},
      {"statistics",
       {uses_activations, false,
        [&](const auto& value) {
          job.align.statistics =
              choice_named<transport::Statistics>("statistics", value, kStatistics);
        }}},
      {"mask",
       {nullptr, false,
        [&](const auto& value) {
          job.mask = value.empty() ? gradient::Mask::kNormal : gradient::mask_of(value);
        }}},
      {"vote", {nullptr, false, [&](const auto& value) { job.vote = gradient::vote_of(value); }}}};
}

void require_heeded(const std::string& name, Heeds heeds, const std::string& method) {
  if (heeds == nullptr || heeds(maps::method(method))) {
    return;
  }
  std::string others;
  for (const auto& other : maps::method_words()) {
    others.append(heeds(maps::method(other)) ? " " + other : "");
  }
  throw InputError(c10::str(name, " has no effect with method ", method, "; it is for:", others));
}

// `word` is NAME or NAME=VALUE. Returns NAME.
std::string set_option(const std::string& word, JobOptions& job) {
  const auto equals = word.find('=');
  const auto name = word.substr(0, equals);
  const auto options = options_of(job);
  const auto found = options.find(name);
  if (found == options.end()) {
    std::string known;
    for (const auto& [other, option] : options) {
      known.append(" ").append(other);
    }
    throw InputError(
        c10::str("'", name, "' is none of:", known, machine::did_you_mean(name, known)));
  }
  require_heeded(name, found->second.heeds, job.align.method);
  const auto value = equals == std::string::npos ? "" : word.substr(equals + 1);
  require(
      !found->second.bare || equals == std::string::npos, name, " takes no value, found '", value,
      "'");
  found->second.set(value);
  return name;
}

}  // namespace

void set_method(const std::string& words, JobOptions& job) {
  with_context("reading the method " + words, [&] {
    auto end = words.find(':');
    job.align.method = words.substr(0, end);
    job.align.maps.stream = maps::method(job.align.method).stream;  // throws for what is none
    bool votes = false;
    while (end != std::string::npos) {
      const auto begin = end + 1;
      end = words.find(':', begin);
      const auto option =
          set_option(words.substr(begin, end == std::string::npos ? end : end - begin), job);
      votes = votes || option == "vote";
    }
    require(!votes || mask_of(job) != gradient::Mask::kNone, "vote has no effect without mask");
    maps::needs_of(
        maps::method(job.align.method), job.align.maps);  // throws for values out of range
  });
}

std::string method_words(const transport::AlignOptions& align) {
  const auto& maps = align.maps;
  const maps::Options usual;
  auto words = align.method;
  words += maps.center ? ":center" : "";
  words += maps.stream && !maps::method(align.method).stream ? ":stream" : "";
  words += maps.whiten != usual.whiten ? fmt::format(":whiten={}", maps.whiten) : "";
  words += maps.ridge != usual.ridge ? fmt::format(":ridge={}", maps.ridge) : "";
  words += name_of_choice<maps::Rank>("rank", maps.rank, kRanks);
  return words + name_of_choice<transport::Statistics>("statistics", align.statistics, kStatistics);
}

const maps::Method& method_of(const std::string& words) {
  return maps::method(words.substr(0, words.find(':')));
}

}  // namespace theseus::output
