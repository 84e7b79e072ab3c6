#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "theseus/gradient/labelled.h"
#include "theseus/model/model.h"

namespace theseus::stats {

enum class Side { kSource, kTarget };

// Which sequences take part: as many as one of these numbers says, drawn by `seed`, or all in order where there are no
// more, or where none is said.
struct Sampling {
  int64_t batch_size = 32;
  int64_t batches = 0;  // so many batches
  int64_t draw = 0;     // else so many sequences
  int64_t most = 0;     // else at most so many, without a word where there are fewer
  uint64_t seed = 0;

  int64_t wanted() const;  // sequences; 0: all
  // What was asked for and is not there, in words; empty: nothing.
  std::string fewer(int64_t there, const char* what) const;
};

// What both models get of a batch, and, where they tokenize differently, which text each token stands
// for, by the input whose ids they are: int64 [n, t, 2], bytes from .. to, equal for what is no text.
struct PairedBatch {
  model::Batch source, target;
  std::map<std::string, at::Tensor> source_spans = {}, target_spans = {};
};

// The spans of a tower's tokens, or an undefined tensor.
at::Tensor find_spans(
    const std::map<std::string, at::Tensor>& spans,
    const model::Batch& inputs,
    const std::string& tower);

// Inputs for both models, in batches. Sequence i of the source's inputs and sequence i of the target's show
// the same thing. Nobody but who asks for labelled() sees labels.
class Calibration {
 public:
  // A file of tensors: pixel_values or input_ids (attention_mask, token_type_ids,
  // decoder_input_ids), for both models or, under source/NAME and target/NAME, for each its own; then
  // also source/spans and target/spans (decoder_spans), which say what text the tokens stand for. Beside
  // them there may be labels [n], or the ids wanted [n, t] of each place's next token (-100: none), and
  // classes [c, d], the features of class names by which CLIP tells images; these two likewise also for
  // each its own.
  // Reads the header; opens no model. Throws InputError when a model would get nothing, when counts
  // differ, or for a tensor of another name.
  static Calibration open(
      const std::filesystem::path& path,
      const model::Architecture& source,
      const model::Architecture& target,
      const Sampling& sampling);

  // A first part, and a last one to hold out: of each input the last quarter of its batches, at least
  // one; of an input with a single batch the last quarter of its sequences. Throws InputError when an
  // input has one sequence only.
  std::pair<Calibration, Calibration> split() const;

  // The same sequences in the same order, so many at a time.
  Calibration in_batches_of(int64_t sequences) const;

  int64_t batches() const { return batches_; }
  int64_t batch_size() const { return batch_size_; }
  int64_t sequences() const { return sequences_; }  // that take part
  int64_t available() const { return available_; }
  // The target's tokens of those that are not padding; nothing where no mask says so.
  std::optional<int64_t> unpadded() const;
  // What a reader should know: that fewer are there than were asked for, or fewer texts than images.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::filesystem::path& path() const { return path_; }
  // Whether both models get the same token ids, so that their vocabularies must be the same.
  bool shares_ids() const { return shares_ids_; }

  // Inputs run out at their own ends: a batch may have texts and no images.
  model::Batch source(int64_t batch) const { return cut(source_, batch); }
  model::Batch target(int64_t batch) const { return cut(target_, batch); }
  // Images are large, and only stage 0 of a walk looks at them: for later ones they are empty.
  // `pinned`: in memory that a GPU reads by itself.
  PairedBatch pair(int64_t batch, int64_t stage = 0, bool pinned = false) const;
  // Nobody reads images after stage 0: their pages need not stay in memory. They come back when read.
  void forget_images() const;
  // Whether it says which text each token stands for.
  bool has_spans() const { return !source_spans_.empty(); }

  // Throws InputError unless it says what both models should say, in a form that can be used.
  void require_labels() const;
  // The inputs that labels or wanted ids belong to, with these. Must be there: see require_labels().
  gradient::Labelled labelled(Side side, int64_t batch) const;
  // "labels" [n] or "wanted" [n, t] of all sequences, or undefined.
  at::Tensor find_answer(Side side, const std::string& name) const;
  // Features of class names [c, d] for this model, or undefined.
  at::Tensor classes(Side side) const;

 private:
  // The file's tensors, each for the models that it is meant for.
  void take(
      const checkpoint::Checkpoint& file,
      const model::Architecture& source,
      const model::Architecture& target);
  // Whether the tensor is none of the inputs, but belongs to what should be said to them.
  bool take_answer(const checkpoint::Checkpoint& file, const std::string& name);
  void check_spans() const;
  void draw(const Sampling& sampling);
  void note_counts(const Sampling& sampling);
  // Sequences first(n) .. last(n) - 1 of every input with n sequences, in the order of this one.
  using Place = std::function<int64_t(int64_t count)>;
  Calibration part(const Place& first, const Place& last) const;
  model::Batch cut(
      const model::Batch& whole, int64_t batch, bool images = true, bool pinned = false) const;

  std::filesystem::path path_;
  std::shared_ptr<const checkpoint::Checkpoint> file_;
  model::Batch source_, target_;  // views of the file
  std::map<std::string, at::Tensor> source_spans_, target_spans_;
  model::Batch source_answers_, target_answers_;  // labels, wanted
  at::Tensor source_classes_, target_classes_;
  std::map<int64_t, std::vector<int64_t>> order_;  // by count; empty: as they stand
  int64_t batch_size_ = 0;
  int64_t batches_ = 0;
  int64_t sequences_ = 0, available_ = 0;
  std::vector<std::string> notes_;
  bool shares_ids_ = false;
};

}  // namespace theseus::stats
