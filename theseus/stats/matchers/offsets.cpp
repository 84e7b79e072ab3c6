// Text that the two models cut into different tokens. A token of the target goes with the mean of the
// source's tokens that share characters with it, each weighted by how many it shares. Tokens that stand
// for no text pair at the ends only: the first with the first ([CLS], <s>), the last with the last.

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/stats/matcher.h"

namespace theseus::stats::matchers {
namespace {

struct Token {
  int64_t row = 0;  // among all sequences under each other
  int64_t begin = 0, end = 0;

  bool is_text() const { return begin < end; }
};

// Row `target[m]` of the target goes with the sum of weight x row `source[i]` over i with pair[i] = m.
struct Pairing {
  std::vector<int64_t> target;
  std::vector<int64_t> pair, source;
  std::vector<float> weight;

  void open(const Token& token) { target.push_back(token.row); }
  void add(const Token& token, int64_t shared) {
    pair.push_back(static_cast<int64_t>(target.size()) - 1);
    source.push_back(token.row);
    weight.push_back(static_cast<float>(shared));
  }
};

std::vector<Token> tokens_of(const at::Tensor& spans, const at::Tensor& kept, int64_t sequence) {
  const auto places = spans.accessor<int64_t, 3>();
  std::vector<Token> tokens;
  for (int64_t i = 0; i < spans.size(1); ++i) {
    if (!kept.defined() || kept.accessor<bool, 2>()[sequence][i]) {
      tokens.push_back(
          {sequence * spans.size(1) + i, places[sequence][i][0], places[sequence][i][1]});
    }
  }
  return tokens;
}

void pair_ends(const Token& source, const Token& target, Pairing& pairing) {
  if (!source.is_text() && !target.is_text()) {
    pairing.open(target);
    pairing.add(source, 1);
  }
}

// Both sides' texts stand in order, so what ends before this token is behind for good.
void pair_texts(
    const std::vector<Token>& source, const std::vector<Token>& target, Pairing& pairing) {
  size_t first = 0;
  for (const auto& token : target) {
    if (!token.is_text()) {
      continue;
    }
    while (first < source.size() && source[first].end <= token.begin) {
      ++first;
    }
    bool opened = false;
    for (size_t i = first; i < source.size() && source[i].begin < token.end; ++i) {
      const auto shared =
          std::min(source[i].end, token.end) - std::max(source[i].begin, token.begin);
      if (source[i].is_text() && shared > 0) {
        if (!opened) {
          pairing.open(token);
          opened = true;
        }
        pairing.add(source[i], shared);
      }
    }
  }
}

std::vector<Token> only_text(std::vector<Token> tokens) {
  std::erase_if(tokens, [](const Token& token) { return !token.is_text(); });
  return tokens;
}

Pairing pairing_of(const Sequences& source, const Sequences& target) {
  const auto source_kept = source.kept.defined() ? source.kept.cpu() : at::Tensor();
  const auto target_kept = target.kept.defined() ? target.kept.cpu() : at::Tensor();
  const auto source_spans = source.spans.cpu(), target_spans = target.spans.cpu();
  Pairing pairing;
  for (int64_t k = 0; k < target.rows.size(0); ++k) {
    const auto from = tokens_of(source_spans, source_kept, k);
    const auto to = tokens_of(target_spans, target_kept, k);
    if (from.empty() || to.empty()) {
      continue;
    }
    pair_ends(from.front(), to.front(), pairing);
    pair_texts(only_text(from), only_text(to), pairing);
    if (from.size() > 1 && to.size() > 1) {
      pair_ends(from.back(), to.back(), pairing);
    }
  }
  return pairing;
}

void check(const Sequences& sequences, const char* side) {
  require(
      sequences.spans.defined(),
      "matching by 'offsets' needs to know which text each token of the ", side,
      " stands for; give texts as examples, not ids");
  require<InternalError>(
      sequences.spans.size(0) == sequences.rows.size(0) &&
          sequences.spans.size(1) == sequences.rows.size(1),
      "spans ", sequences.spans.sizes(), " for rows ", sequences.rows.sizes());
}

PairedRows match(const Sequences& source, const Sequences& target) {
  check(source, "source");
  check(target, "target");
  require(
      source.rows.size(0) == target.rows.size(0), "the source has ", source.rows.size(0),
      " sequences, the target ", target.rows.size(0));
  const auto pairing = pairing_of(source, target);
  require(!pairing.target.empty(), "no token of the source shares text with one of the target");
  const auto device = source.rows.device();
  const auto index = [&](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).to(device);
  };
  const auto m = static_cast<int64_t>(pairing.target.size());
  const auto pair = index(pairing.pair);
  const auto shared = at::tensor(pairing.weight, at::kFloat).to(source.rows.options());
  const auto whole = at::zeros({m}, shared.options()).index_add_(0, pair, shared);
  const auto weight = (shared / whole.index_select(0, pair)).unsqueeze(-1);  // [i, 1]
  const auto parts = source.rows.flatten(0, 1).index_select(0, index(pairing.source)) * weight;
  return {
      at::zeros({m, source.rows.size(2)}, parts.options()).index_add_(0, pair, parts),
      target.rows.flatten(0, 1).index_select(0, index(pairing.target))};
}

}  // namespace

const Matcher& offsets() {
  static const Matcher matcher = {
      .summary = "tokens by the characters they stand for, for two tokenizers",
      .needs_spans = true,
      .match = match};
  return matcher;
}

}  // namespace theseus::stats::matchers
