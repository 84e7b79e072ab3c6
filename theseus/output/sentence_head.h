#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

namespace theseus::output {

// A linear classifier beside a bare encoder of text, on the mean of the tokens that are no padding. It lies
// there as sentence-transformers keeps modules, so that SentenceTransformer(DIR).encode(texts) gives the
// logits, and the encoder itself is as it was for everybody else:
//
//   modules.json              Transformer, Pooling and, by the name "classifier", Dense with "labels"
//   1_Pooling/config.json     the mean
//   2_Dense/config.json, model.safetensors   linear.weight [c, d], linear.bias [c]
struct SentenceHead {
  at::Tensor weight, bias;
  std::vector<std::string>
      classes;  // by name, from "labels", or id2label of config.json; may be empty
};

// What modules.json lists; `path` is the name of a directory beside it, or empty.
struct SentenceModule {
  std::string name, type, path;
  std::vector<std::string> labels;
};
// Empty where that file is missing or is no such list.
std::vector<SentenceModule> sentence_modules(const std::filesystem::path& directory);
// Whether one of them is called as a head of ours is; it may not be one.
bool has_sentence_head(const std::filesystem::path& directory);

// Into a directory that has none of these files.
void write_sentence_head(const SentenceHead& head, const std::filesystem::path& directory);

// The head in a model's or an adapter's directory; none where modules.json is missing or names no
// "classifier". Throws InputError when what it names is missing, or computes something else.
std::optional<SentenceHead> find_sentence_head(const std::filesystem::path& directory);

// Puts a head that lies in `directory` into the model's passes, which then give logits, until detach().
// Returns whether there is one. Throws InputError when it reads another width. A model whose family has no
// such heads is left alone.
bool take_sentence_head(const std::filesystem::path& directory, model::Model& model);

// What the directory's own pooling is ("the first token"), when that is not the mean; else empty.
std::string other_pooling(const std::filesystem::path& directory);

}  // namespace theseus::output
