#include "theseus/data/sampling.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/shuffle.h"

namespace theseus::data {
namespace {

std::map<int64_t, std::vector<int64_t>> members_of_classes(const Examples& examples) {
  std::map<int64_t, std::vector<int64_t>> members;
  for (int64_t i = 0; i < std::ssize(examples.classes); ++i) {
    members[i];
  }
  for (int64_t i = 0; i < examples.size(); ++i) {
    members[examples.labels[i]].push_back(i);
  }
  return members;
}

// Classes with fewer than `shots`, in words; empty: there are none.
std::string words_on_few(
    const std::map<int64_t, std::vector<int64_t>>& members,
    const Examples& examples,
    int64_t shots) {
  std::vector<std::string> few;
  for (const auto& [label, of_class] : members) {
    if (std::ssize(of_class) < shots) {
      const bool named = label < std::ssize(examples.classes);
      few.push_back(c10::str(
          named ? printable(examples.classes[label]) : c10::str("class ", label), " (",
          of_class.size(), ")"));
    }
  }
  return few.empty() ? ""
                     : c10::str(
                           "--shots ", shots,
                           ": of some classes there are fewer, and all of these were used: ",
                           joined(few, 10));
}

}  // namespace

Draw draw_batches(const Examples& examples, int64_t batches, int64_t batch_size, uint64_t seed) {
  require(
      batches > 0 && batch_size > 0, "cannot draw ", batches, " batches of ", batch_size,
      "; both must be at least 1");
  const auto size = examples.size();
  require(
      batches <= size / batch_size, "cannot draw ", batches, " batches of ", batch_size,
      " without replacement from ", size, " examples; ask for fewer");
  Draw draw = {
      .kind = "batches",
      .seed = seed,
      .batches = batches,
      .batch_size = batch_size,
      .available = size};
  draw.order.resize(static_cast<size_t>(size));
  std::iota(draw.order.begin(), draw.order.end(), 0);
  Random random(seed);
  const auto count = static_cast<size_t>(batches * batch_size);
  shuffle_front(draw.order, count, random);
  draw.order.resize(count);
  draw.hash = hash_of(examples, draw.order);
  return draw;
}

Draw draw_per_class(const Examples& examples, int64_t shots, uint64_t seed) {
  require(shots > 0, "cannot draw ", shots, " of each class; ask for at least 1");
  require(
      !examples.labels.empty(),
      "cannot draw by class: these examples have no labels; draw batches instead");
  auto members = members_of_classes(examples);
  Draw draw = {
      .kind = "per class",
      .seed = seed,
      .shots = shots,
      .classes = std::ssize(members),
      .available = examples.size(),
      .fewer = words_on_few(members, examples, shots)};
  Random random(seed);
  for (auto& [label, of_class] : members) {
    const auto count = std::min(shots, std::ssize(of_class));
    shuffle_front(of_class, static_cast<size_t>(count), random);
    draw.order.insert(draw.order.end(), of_class.begin(), of_class.begin() + count);
  }
  // Batches of one class after the other would not be alike.
  shuffle_front(draw.order, draw.order.size(), random);
  draw.hash = hash_of(examples, draw.order);
  return draw;
}

Draw draw_some(const Examples& examples, int64_t count, uint64_t seed) {
  auto draw = draw_batches(examples, 1, count, seed);
  draw.kind = "examples";
  draw.batches = draw.batch_size = 0;
  return draw;
}

std::vector<int64_t> every(const Examples& examples) {
  std::vector<int64_t> order(static_cast<size_t>(examples.size()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Draw draw_all(const Examples& examples) {
  Draw all{.kind = "all", .available = examples.size(), .order = every(examples)};
  all.hash = hash_of(examples, all.order);
  return all;
}

std::string hash_of(const Examples& examples, const std::vector<int64_t>& order) {
  std::string text;
  for (const auto index : order) {
    const auto& name = examples.names.at(index);
    const auto slash = name.rfind('/');
    text += c10::str(
        index, " ", examples.labels.empty() ? int64_t{-1} : examples.labels.at(index), " ",
        slash == std::string::npos ? name : name.substr(slash + 1), "\n");
  }
  return hash_of_text(text);
}

nlohmann::ordered_json describe(const Draw& draw, const Examples& examples) {
  nlohmann::ordered_json words = {{"source", examples.source}};
  if (!examples.split.empty()) {
    words["split"] = examples.split;
  }
  words["drawn"] = draw.kind;
  if (draw.batches > 0) {
    words["batches"] = draw.batches;
    words["batch_size"] = draw.batch_size;
  } else if (draw.shots > 0) {
    words["per_class"] = draw.shots;
    words["classes"] = draw.classes;
  }
  words["examples"] = draw.order.size();
  words["available"] = draw.available;
  if (!draw.fewer.empty()) {
    words["fewer"] = draw.fewer;
  }
  words["seed"] = draw.seed;
  words["hash"] = draw.hash;
  return words;
}

}  // namespace theseus::data
