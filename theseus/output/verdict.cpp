#include "theseus/output/verdict.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "theseus/model/parameter.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;

// Chosen on the settings in docs/diagnose.md. The cosines are the centred ones.
constexpr double kClose = 0.05;     // |A - B| / |A| below which the update fits as it is
constexpr double kWorks = 0.9;      // mean cosine from which every setting gained
constexpr double kHopeless = 0.45;  // mean cosine in the last block below which none did
constexpr double kEnough = 0.5;     // of the update in directions that the statistics determine
constexpr double kGained =
    0.3;  // of the rows without agreement, won: every such setting gained much
constexpr int64_t kFewestRows = 20;
constexpr double kNothing = 0.05;  // below this none gained
constexpr double kAlready = 0.95;  // agreement from which there is too little left to win

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

struct Summary {
  double before = 0, after = 0, centred = 0;  // means over spaces
  double last = 0;                            // centred, in the last block of the worst tower
  std::pair<double, std::string> least = {2, ""};
  std::vector<const ordered_json*> short_of_rows, narrow;
};

// Early blocks of any two models see the inputs alike, trained or not; the last ones need not.
double in_last_block(const ordered_json& spaces) {
  struct Block {
    int64_t stage = -1, count = 0;
    double sum = 0;
  };
  std::map<std::string, Block> last;  // by tower
  for (const auto& space : spaces) {
    const auto name = space.at("space").get<std::string>();
    const auto stage = space.at("stage").get<int64_t>();
    auto& block = last[model::tower_of_space(name)];
    if (!model::is_in_block(name) || stage < block.stage) {
      continue;
    }
    block = stage > block.stage ? Block{.stage = stage} : block;
    block.sum += space.at("centred").get<double>();
    ++block.count;
  }
  double least = 1;
  for (const auto& [tower, block] : last) {
    least = block.count > 0 ? std::min(least, block.sum / static_cast<double>(block.count)) : least;
  }
  return least;
}

Summary sum_up(const ordered_json& spaces) {
  Summary sum;
  sum.last = in_last_block(spaces);
  const auto count = static_cast<double>(spaces.size());
  for (const auto& space : spaces) {
    sum.before += space.at("before").get<double>() / count;
    sum.after += space.at("after").get<double>() / count;
    const auto centred = space.at("centred").get<double>();
    sum.centred += centred / count;
    sum.least = std::min(sum.least, {centred, space.at("space")});
    const auto rank = space.at("rank").get<int64_t>();
    if (!space.contains("energy") || space.at("energy").get<double>() >= kEnough) {
      continue;
    }
    if (rank < space.at("possible").get<int64_t>()) {
      sum.short_of_rows.push_back(&space);
    } else if (rank >= space.at("of").get<int64_t>()) {
      sum.narrow.push_back(&space);
    }  // else no inputs could show more of it, in any pair of models
  }
  return sum;
}

std::string worst_energy(const std::vector<const ordered_json*>& spaces) {
  const auto worst = *std::min_element(spaces.begin(), spaces.end(), [](auto* a, auto* b) {
    return a->at("energy").template get<double>() < b->at("energy").template get<double>();
  });
  return worst->at("space").get<std::string>() + " with " +
         number(100 * worst->at("energy").get<double>()) + " % of the update at rank " +
         std::to_string(worst->at("rank").get<int64_t>()) + " of " +
         std::to_string(worst->at("of").get<int64_t>());
}

std::string about_cosine(const Summary& sum) {
  return "held-out activations about their means have a cosine of " + number(sum.centred) +
         " after mapping, on average over spaces";
}

// The word of an agreement that can decide; else empty.
std::string decided_by(const std::optional<Agreement>& found) {
  if (!found || found->before >= kAlready || found->rows < kFewestRows) {
    return {};
  }
  const auto gain = found->gain(), error = found->error();
  if (gain >= kGained) {
    return gain - error > kNothing ? "works" : "";
  }
  if (gain < kNothing) {
    return gain + error < kGained ? "will not work" : "";
  }
  return error < kGained ? "may work" : "";
}

std::string about_agreement(const Agreement& found, const std::string& word) {
  const auto* meaning = word == "works"           ? ""
                        : word == "will not work" ? ": the change does not carry over"
                        : word == "may work"      ? ": a little of the change carries over"
                        : found.before >= kAlready
                            ? ": fine-tuning changes too little of it to tell by"
                            : ": too few rows to tell by";
  return "on " + std::to_string(found.rows) +
         " held-out rows the target says what the tuned source says in " +
         number(100 * found.before) + " % without the update and in " + number(100 * found.after) +
         " % with it at strength " + number(found.alpha) + meaning;
}

}  // namespace

Verdict judge(
    const ordered_json& spaces,
    const BaseDistance& distance,
    const std::optional<Agreement>& agreement,
    bool akin) {
  const auto sum = sum_up(spaces);
  Verdict verdict{.word = decided_by(agreement)};
  const bool decided = !verdict.word.empty();
  auto& reasons = verdict.reasons;
  if (distance.same_shapes && distance.compared > 0 && distance.relative < kClose) {
    verdict.word = "just copy";
    reasons.push_back(
        "the bases differ by " + number(distance.relative) + " of the source's norm (below " +
        number(kClose) +
        "), and everything has the same shape: add the update as it is (method "
        "identity)");
  } else if (decided) {
    reasons.push_back(about_agreement(*agreement, verdict.word));
    reasons.push_back(about_cosine(sum) + ", and " + number(sum.last) + " in the last block");
  } else if (sum.last < kHopeless) {
    verdict.word = "will not work";
    reasons.push_back(
        "in the last block held-out activations about their means have a cosine of " +
        number(sum.last) + " after mapping, below " + number(kHopeless) +
        ": there the two models do not see these inputs alike");
  } else if (sum.centred < kWorks) {
    verdict.word = "may work";
    reasons.push_back(
        about_cosine(sum) + ", below " + number(kWorks) + ", and " + number(sum.last) +
        " in the last block: some such pairs gain, others do not, and only trying tells");
  } else {
    verdict.word = "works";
    reasons.push_back(about_cosine(sum) + ", at least " + number(kWorks));
  }
  reasons.push_back(
      "with their means the cosine is " + number(sum.after) + ", and " + number(sum.before) +
      " without a map; the least about the means is " + number(sum.least.first) + " in " +
      sum.least.second);
  if (agreement && !decided) {
    reasons.push_back(about_agreement(*agreement, ""));
  }
  const auto doubt = [&](const std::vector<const ordered_json*>& found, const char* words) {
    if (!found.empty()) {
      reasons.push_back(words + worst_energy(found));
      verdict.word = verdict.word == "works" && !decided ? "may work" : verdict.word;
    }
  };
  doubt(
      sum.short_of_rows,
      "too few rows: the statistics do not determine where most of the update lies, worst in ");
  doubt(sum.narrow, "the target is narrower, and most of the update does not fit, worst in ");
  if (!akin) {
    reasons.emplace_back(
        "the tuned model hardly looks like a tune of the source, or parts of it do not (see the "
        "notes): what is carried may be no skill");
    verdict.word = verdict.word == "will not work" ? verdict.word : "may work";
  }
  return verdict;
}

}  // namespace theseus::output
