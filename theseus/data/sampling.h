#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "theseus/data/examples.h"

namespace theseus::data {

// Which examples were drawn, and how: enough to draw them again. The same on every machine.
struct Draw {
  std::string kind;  // "batches", "examples", "per class" or "all"
  uint64_t seed = 0;
  int64_t batches = 0;
  int64_t batch_size = 0;
  int64_t shots = 0;
  int64_t classes = 0;
  int64_t available = 0;
  std::string fewer;           // what was asked for and is not there, in words; empty: nothing
  std::vector<int64_t> order;  // of examples
  std::string hash;            // see hash_of
};

// B-shot: `batches` random batches of `batch_size` examples, none twice. Throws InputError when there are
// too few examples.
Draw draw_batches(const Examples& examples, int64_t batches, int64_t batch_size, uint64_t seed);

// `count` random examples, none twice: draw_batches() with one batch. Throws InputError when there are too few.
Draw draw_some(const Examples& examples, int64_t count, uint64_t seed);

// K-shot: `shots` random examples of each class, then all of them shuffled. Classes are those with a name,
// without names those with an example. Of a class with fewer all are taken, and `fewer` names it. Throws InputError
// for unlabelled examples.
Draw draw_per_class(const Examples& examples, int64_t shots, uint64_t seed);

// All of them in the order in which they are stored.
Draw draw_all(const Examples& examples);
std::vector<int64_t> every(const Examples& examples);  // their places alone

// "xxh3:" and 32 hexadecimal digits of the position, the label and the name (without its folders, which
// differ between machines) of what was drawn, in order. Contents are not read.
std::string hash_of(const Examples& examples, const std::vector<int64_t>& order);

// For provenance: kind, counts, seed, hash, source and split.
nlohmann::ordered_json describe(const Draw& draw, const Examples& examples);

}  // namespace theseus::data
