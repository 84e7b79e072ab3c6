#include "theseus/gradient/labelled.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/data/wording.h"

namespace theseus::gradient {
namespace {

using Ids = std::vector<int64_t>;

at::Tensor some(const at::Tensor& tensor, int64_t first, int64_t count) {
  return tensor.defined() ? tensor.narrow(0, first, count) : tensor;
}

// Ids of a text without the tokens that the tokenizer adds before (`begin`) or behind (`end`) it.
Ids bare(const data::Encoding& encoded, bool begin, bool end) {
  const auto is_added = [&](size_t i) { return encoded.spans[i] == std::pair<int64_t, int64_t>(); };
  size_t first = 0, last = encoded.ids.size();
  while (begin && first < last && is_added(first)) {
    ++first;
  }
  while (end && last > first && is_added(last - 1)) {
    --last;
  }
  return {
      encoded.ids.begin() + static_cast<int64_t>(first),
      encoded.ids.begin() + static_cast<int64_t>(last)};
}

// A text, and its answer with the token that ends it.
std::pair<Ids, Ids> with_answer(const data::Worded& text, const data::Tokenizer& tokenizer) {
  auto ids = bare(tokenizer.encode(text.first, nullptr, 0), false, true);
  auto answer = bare(tokenizer.encode(text.answer, nullptr, 0), true, true);
  if (tokenizer.end() >= 0) {
    answer.push_back(tokenizer.end());
  }
  return {std::move(ids), std::move(answer)};
}

// The text and its answer in one row, and how many of its tokens are the text's. What is too long is
// taken from the end of the text: the answer is what is learnt.
std::pair<Ids, size_t> joined(const data::Worded& text, model::Reader& reader) {
  const auto longest = reader.longest();
  auto [ids, answer] = with_answer(text, reader.tokenizer());
  if (static_cast<int64_t>(ids.size() + answer.size()) > longest) {
    reader.count_truncated();
  }
  const auto room = std::max<int64_t>(1, longest - static_cast<int64_t>(answer.size()));
  ids.resize(std::min(ids.size(), static_cast<size_t>(room)));
  const auto own = ids.size();
  ids.insert(ids.end(), answer.begin(), answer.end());
  ids.resize(std::min(ids.size(), static_cast<size_t>(longest)));
  return {ids, own};
}

// wanted[i][t] is the id at t + 1, where that one is asked for.
Labelled causal_answers(const std::vector<data::Worded>& texts, model::Reader& reader) {
  std::vector<std::pair<Ids, size_t>> rows;
  size_t width = 1;
  for (const auto& text : texts) {
    rows.push_back(joined(text, reader));
    width = std::max(width, rows.back().first.size());
  }
  const auto n = static_cast<int64_t>(rows.size()), t = static_cast<int64_t>(width);
  auto ids = at::full({n, t}, reader.tokenizer().padding(), at::kLong);
  auto mask = at::zeros({n, t}, at::kLong);
  auto wanted = at::full({n, t}, kIgnored, at::kLong);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [row, own] = rows[i];
    std::copy(row.begin(), row.end(), ids.data_ptr<int64_t>() + i * width);
    std::fill_n(mask.data_ptr<int64_t>() + i * width, row.size(), 1);
    std::copy(
        row.begin() + static_cast<int64_t>(std::max<size_t>(own, 1)), row.end(),
        wanted.data_ptr<int64_t>() + i * width + std::max<size_t>(own, 1) - 1);
  }
  return {.batch = {{"input_ids", ids}, {"attention_mask", mask}}, .wanted = wanted};
}

at::Tensor next_ids(const model::Batch& batch) {
  const auto& ids = batch.at("input_ids");
  auto wanted = at::full_like(ids, kIgnored);
  const auto length = ids.size(1) - 1;
  const auto real = batch.at("attention_mask").narrow(1, 1, length) != 0;
  wanted.narrow(1, 0, length)
      .copy_(ids.narrow(1, 1, length).masked_fill(real.logical_not(), kIgnored));
  return wanted;
}

Labelled packed_answers(
    const std::vector<data::Worded>& texts, model::Reader& reader, int64_t length) {
  Ids all, answers;  // the second has kIgnored where the first has no answer
  for (const auto& text : texts) {
    const auto [ids, answer] = with_answer(text, reader.tokenizer());
    all.insert(all.end(), ids.begin(), ids.end());
    answers.insert(answers.end(), ids.size(), kIgnored);
    all.insert(all.end(), answer.begin(), answer.end());
    answers.insert(answers.end(), answer.begin(), answer.end());
  }
  auto batch = reader.in_rows(all, length);
  const auto& rows = batch.at("input_ids");
  const auto here = at::tensor(answers, at::kLong).narrow(0, 0, rows.numel()).view_as(rows);
  auto wanted = at::full_like(rows, kIgnored);
  wanted.narrow(1, 0, length - 1).copy_(here.narrow(1, 1, length - 1));
  const auto asked = wanted.ne(kIgnored).any(1).nonzero().squeeze(1);
  require(asked.numel() > 0, "no answer is in a row of ", length, " ids; give longer rows");
  for (auto& [name, tensor] : batch) {
    tensor = tensor.index_select(0, asked);
  }
  return {.batch = batch, .wanted = wanted.index_select(0, asked)};
}

std::vector<data::Worded> worded(
    const data::Examples& examples, const std::vector<int64_t>& places) {
  std::vector<data::Worded> texts;
  for (const auto place : places) {
    texts.push_back(data::worded(examples, examples.wording, place));
  }
  return texts;
}

}  // namespace

int64_t Labelled::size() const {
  return batch.begin()->second.size(0);
}

int64_t Labelled::asked() const {
  return wanted.defined() ? wanted.ne(kIgnored).sum().item<int64_t>() : labels.size(0);
}

Labelled Labelled::part(int64_t first, int64_t count) const {
  Labelled result{.labels = some(labels, first, count), .wanted = some(wanted, first, count)};
  for (const auto& [name, tensor] : batch) {
    result.batch[name] = some(tensor, first, count);
  }
  return result;
}

at::Tensor labels_of(const data::Examples& examples, const std::vector<int64_t>& places) {
  require(!examples.labels.empty(), "these examples have no labels");
  auto labels = at::empty({static_cast<int64_t>(places.size())}, at::kLong);
  std::transform(places.begin(), places.end(), labels.data_ptr<int64_t>(), [&](int64_t place) {
    return examples.labels[static_cast<size_t>(place)];
  });
  return labels;
}

bool is_causal(const model::Model& model) {
  const auto& generation = model.architecture().generation;
  return generation.possible && generation.grows != "decoder_input_ids";
}

Labelled read_with_answers(
    const data::Examples& examples, const std::vector<int64_t>& places, model::Reader& reader) {
  return causal_answers(worded(examples, places), reader);
}

Labelled read_packed(
    const data::Examples& examples,
    const std::vector<int64_t>& places,
    model::Reader& reader,
    int64_t length) {
  const auto texts = worded(examples, places);
  if (!examples.wording.answer.empty()) {
    return packed_answers(texts, reader, length);
  }
  Labelled result{.batch = reader.packed(texts, length)};
  result.wanted = next_ids(result.batch);
  return result;
}

Labelled read_texts(
    const data::Examples& examples,
    const std::vector<int64_t>& places,
    const model::Model& model,
    model::Reader& reader) {
  const bool writes = model.architecture().generation.possible;
  if (is_causal(model) && !examples.wording.answer.empty()) {
    return read_with_answers(examples, places, reader);
  }
  Labelled result{.batch = reader.texts(worded(examples, places))};
  if (writes && !is_causal(model)) {
    result.wanted = reader.answers();
  } else if (writes) {
    result.wanted = next_ids(result.batch);
  } else {
    result.labels = labels_of(examples, places);
  }
  return result;
}

}  // namespace theseus::gradient
