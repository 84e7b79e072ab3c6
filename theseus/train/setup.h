#pragma once

#include <filesystem>
#include <optional>

#include "theseus/gradient/trainable.h"
#include "theseus/model/reader.h"
#include "theseus/train/adamw.h"
#include "theseus/train/choose.h"
#include "theseus/train/finetune.h"
#include "theseus/train/head.h"
#include "theseus/train/write_tuned.h"

namespace theseus::train {

// A model ready to learn: its head, what is trained of it, and where that starts. The model must outlive
// this.
struct Setup {
  // Decides; reads no weights. Throws InputError for what does not go together.
  Setup(const FinetuneOptions& options, model::Model& model, const data::Examples& examples);

  // Makes the leaves.
  void begin(const FinetuneOptions& options);
  int64_t trained() const;  // numbers in leaves
  // As a model, or as an adapter (then nothing is returned) that names options.model as its base.
  std::optional<WrittenTuned> write(
      const FinetuneOptions& options, const std::filesystem::path& directory) const;

  // What the leaves learnt, as write() wrote it, beside the weights: of factors only so many that it is more than nothing.
  output::Addition learnt(const std::optional<WrittenTuned>& written) const;

  model::Model& model;
  Head head;
  Choice choice;
  model::Reader reader;
  gradient::Trainable trainable;
  Tensors fixed;       // what a start changed and nothing trains
  Tensors head_begun;  // an added head, as it was before it learnt

 private:
  void write_factors(
      const std::filesystem::path& base, const std::filesystem::path& directory) const;

  output::Addition learnt_by_factors() const;

  bool low_rank_;
};

}  // namespace theseus::train
