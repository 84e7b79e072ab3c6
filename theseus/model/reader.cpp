#include "theseus/model/reader.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::model {
namespace {

constexpr int64_t kIgnored = -100;    // of a target id: not scored
constexpr int64_t kUnbounded = 2048;  // ids of a text where the model has no limit of its own

// Rows of different lengths [n, t], filled up with `fill`.
at::Tensor padded(const std::vector<std::vector<int64_t>>& rows, int64_t fill) {
  size_t longest = 1;
  for (const auto& row : rows) {
    longest = std::max(longest, row.size());
  }
  auto result =
      at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, fill, at::kLong);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), result.data_ptr<int64_t>() + i * longest);
  }
  return result;
}

using Spans = std::vector<std::pair<int64_t, int64_t>>;

// The second text's characters are others than the first's, whatever their places.
Spans spans_of(const data::Encoding& encoded, size_t first_size) {
  auto spans = encoded.spans;
  const auto shift = static_cast<int64_t>(first_size) + 1;
  for (auto i = encoded.second; i >= 0 && i < static_cast<int64_t>(spans.size()); ++i) {
    auto& span = spans[static_cast<size_t>(i)];
    span = span.first == span.second ? span : std::pair(span.first + shift, span.second + shift);
  }
  return spans;
}

at::Tensor padded(const std::vector<Spans>& rows) {
  std::vector<std::vector<int64_t>> begins(rows.size()), ends(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& span : rows[i]) {
      begins[i].push_back(span.first);
      ends[i].push_back(span.second);
    }
  }
  return at::stack({padded(begins, 0), padded(ends, 0)}, -1);
}

}  // namespace

Reader::Reader(const Model& model, int64_t longest)
    : directory_(model.location().config.parent_path().string()),
      family_(model.location().family),
      inputs_(model.architecture().inputs),
      asked_(longest) {
  for (const auto& tower : model.architecture().towers) {
    image_ = std::max(image_, tower.image);
    positions_ = tower.vocabulary > 0 && tower.positions > 0 ? tower.positions : positions_;
  }
  longest_ = longest > 0 ? longest : positions_ > 0 ? positions_ : kUnbounded;
  require(
      positions_ == 0 || longest_ <= positions_, "--max-length ", longest,
      ": the model takes at most ", positions_, " tokens");
  const auto& start = model.architecture().generation.start;
  decoder_start_ = start.empty() ? 0 : start.front();
}

void Reader::leave_room(int64_t tokens) {
  require(
      positions_ == 0 || tokens < positions_, "--new-tokens ", tokens, ": the model takes at most ",
      positions_, " tokens, with the text before them");
  if (positions_ > 0 && longest_ > positions_ - tokens) {
    longest_ = positions_ - tokens;
    room_ = tokens;
  }
}

std::string Reader::limit_words() const {
  if (room_ > 0) {
    return c10::str("the ", longest_, " tokens that leave the model room for ", room_, " new ones");
  }
  if (asked_ > 0) {
    return c10::str("--max-length ", asked_);
  }
  return positions_ > 0 ? c10::str("the ", longest_, " tokens that the model takes")
                        : c10::str(longest_, " tokens (--max-length takes more)");
}

const data::Preprocessing& Reader::images() const {
  require(image_ > 0, "the ", family_, " model ", directory_, " takes no images");
  if (!preprocessing_) {
    preprocessing_ = data::find_preprocessing(directory_, family_, image_, image_);
  }
  return *preprocessing_;
}

const data::Tokenizer& Reader::tokenizer() const {
  require(
      takes(inputs_, "input_ids") || takes(inputs_, "text"), "the ", family_, " model ", directory_,
      " takes no text");
  if (!tokenizer_) {
    tokenizer_ = data::open_tokenizer(directory_);
  }
  return *tokenizer_;
}

Batch Reader::texts(const std::vector<data::Worded>& texts) {
  const auto& tokenizer = this->tokenizer();
  std::vector<std::vector<int64_t>> ids, types, mask, answers, starts;
  std::vector<Spans> spans, decoder_spans;
  const bool decodes = takes(inputs_, "decoder_input_ids");
  for (const auto& text : texts) {
    const std::string_view second = text.second;
    const auto encoded =
        tokenizer.encode(text.first, text.second.empty() ? nullptr : &second, longest_);
    truncated_ += encoded.truncated ? 1 : 0;
    ids.push_back(encoded.ids);
    types.push_back(encoded.types);
    mask.emplace_back(encoded.ids.size(), 1);
    spans.push_back(spans_of(encoded, text.first.size()));
    if (decodes && !text.answer.empty()) {
      const auto answer = tokenizer.encode(text.answer, nullptr, longest_);
      truncated_ += answer.truncated ? 1 : 0;
      answers.push_back(answer.ids);
      starts.push_back(answer.ids);
      starts.back().insert(starts.back().begin(), decoder_start_);
      starts.back().pop_back();
      decoder_spans.push_back(answer.spans);
      decoder_spans.back().insert(decoder_spans.back().begin(), {0, 0});
      decoder_spans.back().pop_back();
    }
  }
  require(
      answers.empty() || answers.size() == texts.size(), texts.size() - answers.size(), " of ",
      texts.size(), " texts have no answer; all of them need one, or none");
  spans_ = {{"input_ids", padded(spans)}};
  Batch batch;
  batch[takes(inputs_, "text") ? "text" : "input_ids"] = padded(ids, tokenizer.padding());
  if (takes(inputs_, "attention_mask")) {
    batch["attention_mask"] = padded(mask, 0);
  }
  if (takes(inputs_, "token_type_ids")) {
    batch["token_type_ids"] = padded(types, 0);
  }
  answers_ = answers.empty() ? at::Tensor() : padded(answers, kIgnored);
  if (decodes) {
    require(
        !answers.empty(),
        "an encoder-decoder reads answers, too: a wording with an answer is needed");
    batch["decoder_input_ids"] = padded(starts, tokenizer.padding());
    spans_["decoder_input_ids"] = padded(decoder_spans);
  }
  return batch;
}

Batch Reader::packed(const std::vector<data::Worded>& texts, int64_t length) {
  const auto& tokenizer = this->tokenizer();
  std::vector<int64_t> all;
  for (const auto& text : texts) {
    const auto ids = tokenizer.encode(text.first, nullptr, 0).ids;
    all.insert(all.end(), ids.begin(), ids.end());
    if (tokenizer.end() >= 0 && (ids.empty() || ids.back() != tokenizer.end())) {
      all.push_back(tokenizer.end());
    }
  }
  return in_rows(all, length);
}

Batch Reader::in_rows(const std::vector<int64_t>& ids, int64_t length) {
  require(
      takes(inputs_, "input_ids") && !takes(inputs_, "decoder_input_ids") &&
          !takes(inputs_, "token_type_ids"),
      "texts are packed for causal models only, and this is a ", family_, " model");
  require(length <= longest_, "rows of ", length, " ids are longer than ", limit_words());
  const auto rows = static_cast<int64_t>(ids.size()) / length;
  require(
      rows > 0, "all texts together are ", ids.size(), " ids, less than one row of ", length,
      "; give more texts, or shorter rows");
  dropped_ += static_cast<int64_t>(ids.size()) - rows * length;
  const auto all = at::tensor(ids, at::kLong).narrow(0, 0, rows * length).view({rows, length});
  return {{"input_ids", all}, {"attention_mask", at::ones_like(all)}};
}

data::Wording wording_for(const Model& model, const data::Examples& examples) {
  return model.architecture().generation.possible && !examples.prompted.first.empty()
             ? examples.prompted
             : examples.wording;
}

data::Wording wording_for(
    const Model& model, const data::Examples& examples, const data::Wording& given) {
  auto wording = wording_for(model, examples);
  wording.first = given.first.empty() ? wording.first : given.first;
  wording.second = given.second.empty() ? wording.second : given.second;
  wording.answer = given.answer.empty() ? wording.answer : given.answer;
  return wording;
}

}  // namespace theseus::model
