#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "theseus/data/preprocess.h"
#include "theseus/data/tokenizer.h"
#include "theseus/data/wording.h"
#include "theseus/model/model.h"

namespace theseus::model {

// How one model is fed: what the files beside it say of images and text.
class Reader {
 public:
  // `longest`: ids of a text at most; 0: what the model takes.
  Reader(const Model& model, int64_t longest);

  // Both throw InputError when the model takes no such input, or its files do not say how.
  const data::Preprocessing& images() const;
  const data::Tokenizer& tokenizer() const;

  // Ids with mask and types as the model takes them, padded to the longest of these texts. With an answer
  // in their wording, an encoder-decoder also gets decoder_input_ids; answers_ of them are below.
  Batch texts(const std::vector<data::Worded>& texts);
  // Texts one after the other, each with its end token, in rows of `length` ids; a last row that is not
  // full is left out. For causal models, which would waste padding. Throws InputError when not one row
  // is full.
  Batch packed(const std::vector<data::Worded>& texts, int64_t length);
  // Ids that stand one after the other, in such rows.
  Batch in_rows(const std::vector<int64_t>& ids, int64_t length);
  // Ids of the answers [n, t] that the decoder should write, -100 where there is padding; undefined
  // without answers, or a decoder. Of the last call of texts().
  const at::Tensor& answers() const { return answers_; }
  // By the input whose ids they place (input_ids, decoder_input_ids): the bytes [n, t, 2] of text that each
  // id stands for, from .. to; a second text lies behind the first. Equal numbers for what was added and
  // for padding. Of the last call of texts().
  const std::map<std::string, at::Tensor>& spans() const { return spans_; }
  int64_t longest() const { return longest_; }  // ids of a text
  // Of a model that goes on writing behind its text: texts are cut so that `tokens` more fit.
  void leave_room(int64_t tokens);
  // Texts that were longer than longest() and were cut, so far.
  int64_t truncated() const { return truncated_; }
  // What they were longer than: "--max-length 16", "the 512 tokens that the model takes".
  std::string limit_words() const;
  int64_t dropped() const { return dropped_; }  // ids of packed texts that filled no row, so far
  void count_truncated() { ++truncated_; }      // by whoever cuts texts beside texts()

 private:
  std::string directory_, family_;
  std::vector<std::string> inputs_;
  int64_t image_ = 0;
  int64_t longest_ = 0, asked_ = 0, positions_ = 0, room_ = 0;
  int64_t decoder_start_ = 0;
  mutable std::optional<data::Preprocessing> preprocessing_;
  mutable std::unique_ptr<data::Tokenizer> tokenizer_;
  at::Tensor answers_;
  std::map<std::string, at::Tensor> spans_;
  int64_t truncated_ = 0, dropped_ = 0;
};

// What texts of `examples` are worded as for this model: with an answer for those that write one.
data::Wording wording_for(const Model& model, const data::Examples& examples);
// The same, with every part of `given` that is not empty in its place.
data::Wording wording_for(
    const Model& model, const data::Examples& examples, const data::Wording& given);

}  // namespace theseus::model
