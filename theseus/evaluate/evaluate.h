#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/evaluate/feed.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate {

// What a model is measured on, and how.
struct EvaluateOptions {
  std::string data;      // as data::open_examples reads it
  std::string split;     // empty: test where there is one
  std::string training;  // of the probe; empty: the train split of `data`
  std::string task;      // empty: task_for()
  Settings settings;
  FeedOptions feed;
  int64_t limit = 0;           // this many examples, drawn by `seed`; 0: all
  int64_t training_limit = 0;  // of the probe's examples; 0: all
  int64_t longest = 0;         // ids of a text; 0: what the model takes
  uint64_t seed = 0;
  std::string wording, second, answer;  // instead of the data's own
};

// Called with how many of how many examples are done.
using Watch = std::function<void(int64_t done, int64_t all, const std::string& doing)>;

// Score with its interval, what was measured, notes. Throws InputError.
nlohmann::ordered_json evaluate(
    model::Model& model, const EvaluateOptions& options, const Watch& watch);

// What is measured by which task, and what a task that trains learns from.
struct Measuring {
  data::Examples examples, seen;
  std::vector<int64_t> order, drawn;  // of them
  std::string word;                   // of the task
  std::vector<std::string> notes;  // on classes that were paired, and on examples that were too few
};

// Opens it and checks all that can be checked before the model runs. Throws InputError.
Measuring open_measuring(model::Model& model, const EvaluateOptions& options);

// The examples to measure on, worded for the model, and `limit` of them, or all when that is 0.
data::Examples open_data(
    const std::string& data,
    const std::string& split,
    const model::Model& model,
    const EvaluateOptions& options);
std::vector<int64_t> choose(const data::Examples& examples, int64_t limit, uint64_t seed);

// Numbers the classes of `examples` as the head that the task classify would use does, and gives what a reader should know;
// nothing for other tasks. Throws InputError when the classes are others.
std::vector<std::string> number_classes(
    model::Model& model,
    const std::string& task,
    const Settings& settings,
    data::Examples& examples);

// "--limit 1000: there are only 4 examples, and all were used", where fewer than `asked` are there; else nothing.
std::vector<std::string> note_on_fewer(
    const std::string& option, int64_t asked, int64_t there, const std::string& what = "examples");

// Throws InputError unless the model takes such examples, and its files say how: a tokenizer, or how images are
// preprocessed.
void check_readable(const model::Model& model, const data::Examples& examples);

// The task asked for, or task_for(). Throws InputError when other options do not go with it.
std::string task_word(
    const model::Model& model, const data::Examples& examples, const EvaluateOptions& options);
// How examples are given to this task.
FeedOptions feed_for(
    const model::Model& model, const std::string& task, const EvaluateOptions& options);
// What a zero-shot task names classes by, in `record` as "prompts"; other tasks have none.
void add_prompts(
    const std::string& task,
    const data::Examples& examples,
    const Settings& settings,
    nlohmann::ordered_json& record);
// What a task that trains learns from where `measured` are measured: options.training, else the train split of options.data
// or, where that is not divided and `measured` are part of it, all of it. Throws InputError that says how to name them.
data::Examples open_training(
    const model::Model& model, const EvaluateOptions& options, const data::Examples& measured);
// Those of `seen` to learn from: drawn, and none of `measured`, however the two were named. Throws InputError when none is
// left.
std::vector<int64_t> learnt_from(
    const data::Examples& seen, const data::Examples& measured, const EvaluateOptions& options);
// The class of the examples at `order` where all are of one; empty: they are of several, or have no labels.
std::string only_class(const data::Examples& examples, const std::vector<int64_t>& order);
// Images that were left out, texts that were cut.
std::vector<std::string> notes_on_inputs(
    const model::Reader& reader, const std::vector<std::string>& skipped);

}  // namespace theseus::evaluate
