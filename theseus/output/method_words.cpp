#include "theseus/output/method_words.h"

#include <cmath>
#include <functional>
#include <map>

#include "theseus/base/error.h"
#include "theseus/machine/suggest.h"
#include "theseus/output/supervision.h"

namespace theseus::output {
namespace {

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

maps::Rank rank_of(const std::string& word) {
  constexpr const char* kKnown = "complete arbitrary truncate";
  require(
      word == "complete" || word == "arbitrary" || word == "truncate", "rank='", word,
      "' is none of: ", kKnown, machine::did_you_mean(word, kKnown));
  return word == "complete"    ? maps::Rank::kComplete
         : word == "arbitrary" ? maps::Rank::kArbitrary
                               : maps::Rank::kTruncate;
}

void require_bare(const std::string& option, const std::string& value) {
  require(value.empty(), option, " takes no value, found '", value, "'");
}

void set_option(const std::string& option, const std::string& value, JobOptions& job) {
  const auto& obeys = maps::method(job.align.method).obeys;
  const auto obeyed = [&](bool heeded) {
    require(heeded, option, " has no effect with method ", job.align.method);
  };
  auto& maps = job.align.maps;
  const std::map<std::string, std::function<void()>> options = {
      {"center",
       [&] {
         obeyed(maps::method(job.align.method).needs.moments);
         require_bare(option, value);
         maps.center = true;
       }},
      {"stream",
       [&] {
         const auto& needs = maps::method(job.align.method).needs;
         obeyed(needs.moments && !needs.gradients);
         require_bare(option, value);
         maps.stream = true;
       }},
      {"whiten", [&] { obeyed(obeys.whiten), maps.whiten = number_of(option, value); }},
      {"ridge", [&] { obeyed(obeys.ridge), maps.ridge = number_of(option, value); }},
      {"rank", [&] { obeyed(obeys.rank), maps.rank = rank_of(value); }},
      {"mask",
       [&] { job.mask = value.empty() ? gradient::Mask::kNormal : gradient::mask_of(value); }},
      {"vote", [&] { job.vote = gradient::vote_of(value); }}};
  const auto found = options.find(option);
  if (found == options.end()) {
    std::string known;
    for (const auto& [name, set] : options) {
      known.append(" ").append(name);
    }
    throw InputError(
        c10::str("'", option, "' is none of:", known, machine::did_you_mean(option, known)));
  }
  found->second();
}

}  // namespace

void set_method(const std::string& words, JobOptions& job) {
  with_context("reading the method " + words, [&] {
    auto end = words.find(':');
    job.align.method = words.substr(0, end);
    maps::method(job.align.method);  // throws for what is none
    bool votes = false;
    while (end != std::string::npos) {
      const auto begin = end + 1;
      end = words.find(':', begin);
      const auto word = words.substr(begin, end == std::string::npos ? end : end - begin);
      const auto equals = word.find('=');
      const auto option = word.substr(0, equals);
      set_option(option, equals == std::string::npos ? "" : word.substr(equals + 1), job);
      votes = votes || option == "vote";
    }
    require(!votes || mask_of(job) != gradient::Mask::kNone, "vote has no effect without mask");
    maps::needs_of(
        maps::method(job.align.method), job.align.maps);  // throws for values out of range
  });
}

const maps::Method& method_of(const std::string& words) {
  return maps::method(words.substr(0, words.find(':')));
}

}  // namespace theseus::output
