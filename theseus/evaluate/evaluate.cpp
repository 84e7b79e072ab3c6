#include "theseus/evaluate/evaluate.h"

#include <algorithm>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/class_match.h"
#include "theseus/data/identity.h"
#include "theseus/data/part.h"
#include "theseus/data/sampling.h"
#include "theseus/data/shuffle.h"
#include "theseus/evaluate/head.h"
#include "theseus/gradient/labelled.h"

namespace theseus::evaluate {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShown = 5;

// An option that would be ignored is a misunderstanding.
void require_for_examples(
    const model::Model& model, const data::Examples& examples, const EvaluateOptions& options) {
  const auto& architecture = model.architecture();
  const auto reads = [&](const char* input) { return model::takes(architecture.inputs, input); };
  const bool text = !examples.image || reads("text") || reads("input_ids");
  const std::tuple<const char*, bool, bool, const char*> rules[] = {
      {"--wording", !options.wording.empty(), !examples.image, "texts, and these are images"},
      {"--second", !options.second.empty(), !examples.image, "texts, and these are images"},
      {"--answer", !options.answer.empty(), !examples.image, "texts, and these are images"},
      {"--answer", !options.answer.empty(), architecture.generation.possible,
       "models that write text, and this one does not"},
      {"--max-length", options.longest > 0, text, "texts, and this model reads images alone"}};
  for (const auto& [option, given, applies, where] : rules) {
    require(!given || applies, option, " is for ", where);
  }
}

void require_for_task(const std::string& task, const EvaluateOptions& options) {
  const auto& settings = options.settings;
  const bool probes = make_task(task)->trains() || settings.head != nullptr;
  const std::tuple<const char*, bool, bool, const char*> rules[] = {
      {"--pack", options.feed.pack > 0, task == "perplexity", "perplexity"},
      {"--template", !settings.templates.empty(), task == "zero-shot", "zero-shot"},
      {"--new-tokens", settings.new_tokens.has_value(), task == "summarise", "summarise"},
      {"--training", !options.training.empty(), probes, "probe"},
      {"--training-limit", options.training_limit > 0, probes, "probe"},
      {"--probe", settings.ridge.has_value(), probes, "probe"}};
  for (const auto& [option, given, applies, where] : rules) {
    require(!given || applies, option, " is for the task ", where, ", and the task is ", task);
  }
}

void append(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

}  // namespace

data::Examples open_data(
    const std::string& data,
    const std::string& split,
    const model::Model& model,
    const EvaluateOptions& options) {
  auto examples = data::open_examples(data, split);
  require(examples.size() > 0, data, " holds no examples");
  require_for_examples(model, examples, options);
  examples.wording =
      model::wording_for(model, examples, {options.wording, options.second, options.answer});
  return examples;
}

void check_readable(const model::Model& model, const data::Examples& examples) {
  const model::Reader reader(model, 0);
  if (examples.image) {
    reader.images();
  } else {
    reader.tokenizer();
  }
}

std::vector<int64_t> choose(const data::Examples& examples, int64_t limit, uint64_t seed) {
  if (limit == 0 || limit >= examples.size()) {
    return data::every(examples);
  }
  return data::draw_batches(examples, 1, limit, seed).order;
}

std::string task_word(
    const model::Model& model, const data::Examples& examples, const EvaluateOptions& options) {
  const bool given = options.settings.head != nullptr;
  auto word = !options.task.empty() ? options.task : given ? "classify" : task_for(model, examples);
  std::replace(word.begin(), word.end(), '_', '-');  // as make_task() takes it
  require(
      !given || word == "classify", "--head-from is for the task classify, and the task is ", word);
  require_for_task(word, options);
  return word;
}

FeedOptions feed_for(
    const model::Model& model, const std::string& task, const EvaluateOptions& options) {
  auto feed = options.feed;
  feed.answers = task == "perplexity" && gradient::is_causal(model);
  return feed;
}

std::vector<std::string> number_classes(
    model::Model& model,
    const std::string& task,
    const Settings& settings,
    data::Examples& examples) {
  constexpr const char* kOtherwise =
      ". Give data with the head's classes; where only the names differ, change them in id2label "
      "of the model's config.json (timm: label_names), or call them LABEL_0, LABEL_1 and so on "
      "there to pair classes "
      "by their numbers";
  if (task != "classify") {
    return {};
  }
  const auto own = settings.head ? Head() : find_head(model);
  const auto& head = settings.head ? *settings.head : own;
  if (!head.weight.defined()) {
    return {};  // which the task refuses
  }
  const auto note = data::number_as(
      {.whose = "the head",
       .count = head.weight.size(0),
       .names = head.classes,
       .otherwise = kOtherwise},
      examples);
  return note.empty() ? std::vector<std::string>() : std::vector{note};
}

std::vector<std::string> note_on_fewer(
    const std::string& option, int64_t asked, int64_t there, const std::string& what) {
  return asked <= there ? std::vector<std::string>()
                        : std::vector<std::string>{c10::str(
                              option, " ", asked, ": there are only ", there, " ", what,
                              ", and all of them were used")};
}

void add_prompts(
    const std::string& task,
    const data::Examples& examples,
    const Settings& settings,
    ordered_json& record) {
  if (task == "zero-shot") {
    record["prompts"] = settings.templates.empty() ? examples.templates : settings.templates;
  }
}

std::string only_class(const data::Examples& examples, const std::vector<int64_t>& order) {
  if (examples.labels.empty() || order.empty()) {
    return {};
  }
  const auto label = [&](int64_t i) { return examples.labels[static_cast<size_t>(i)]; };
  const auto first = label(order.front());
  if (std::any_of(order.begin(), order.end(), [&](int64_t i) { return label(i) != first; })) {
    return {};
  }
  return printable(
      static_cast<size_t>(first) < examples.classes.size()
          ? examples.classes[static_cast<size_t>(first)]
          : c10::str(first));
}

data::Examples open_training(
    const model::Model& model, const EvaluateOptions& options, const data::Examples& measured) {
  if (!options.training.empty()) {
    return open_data(options.training, "", model, options);
  }
  const auto part = data::find_part(measured.split);
  const bool undivided = measured.split.empty() || (part && part->split.empty());
  require(
      !undivided || part, options.data,
      " is not divided: name the part to measure on, as in --split '[80:100]', and the rest is "
      "learnt from; or give --training DATA");
  return with_context("opening what is learnt from (--training DATA names others)", [&] {
    return open_data(options.data, undivided ? "" : "train", model, options);
  });
}

std::vector<int64_t> learnt_from(
    const data::Examples& seen, const data::Examples& measured, const EvaluateOptions& options) {
  const auto kept_out = data::identities_of(measured);
  auto places = data::every(seen);
  std::erase_if(
      places, [&](int64_t place) { return kept_out.contains(data::identity_of(seen, place)); });
  require(
      !places.empty(), "the training examples are those to be measured on; give --training DATA");
  const auto limit = static_cast<size_t>(options.training_limit);
  if (limit > 0 && limit < places.size()) {
    data::Random random(options.seed);
    data::shuffle_front(places, limit, random);
    places.resize(limit);
  }
  return places;
}

std::vector<std::string> notes_on_inputs(
    const model::Reader& reader, const std::vector<std::string>& skipped) {
  std::vector<std::string> notes;
  if (!skipped.empty()) {
    notes.push_back(c10::str(
        skipped.size(),
        " images could not be decoded and were left out: ", joined(skipped, kShown)));
  }
  if (reader.truncated() > 0) {
    notes.push_back(c10::str(
        reader.truncated(), " texts were longer than ", reader.limit_words(), " and were cut"));
  }
  if (reader.dropped() > 0) {
    notes.push_back(c10::str(
        reader.dropped(), " tokens at the end of the packed texts fill no row and were left out"));
  }
  return notes;
}

Measuring open_measuring(model::Model& model, const EvaluateOptions& options) {
  take_own_head(model);
  Measuring result{.examples = open_data(options.data, options.split, model, options)};
  check_readable(model, result.examples);
  result.word = task_word(model, result.examples, options);
  const auto task = make_task(result.word);
  result.notes = number_classes(model, result.word, options.settings, result.examples);
  result.order = choose(result.examples, options.limit, options.seed);
  append(result.notes, note_on_fewer("--limit", options.limit, result.examples.size()));
  task->check(model, result.examples, result.order, options.settings);
  if (task->trains()) {
    result.seen = open_training(model, options, result.examples);
    result.drawn = learnt_from(result.seen, result.examples, options);
    append(
        result.notes, note_on_fewer(
                          "--training-limit", options.training_limit, std::ssize(result.drawn),
                          "examples to learn from"));
    task->check_training(result.examples, result.seen, result.drawn);
  }
  return result;
}

ordered_json evaluate(model::Model& model, const EvaluateOptions& options, const Watch& watch) {
  const auto measuring = open_measuring(model, options);
  const auto& examples = measuring.examples;
  const auto& order = measuring.order;
  const auto& word = measuring.word;
  model::Reader reader(model, options.longest);
  const auto input = examples.image ? "images as in " + reader.images().origin
                                    : "text by " + reader.tokenizer().words();
  const auto task = make_task(word);
  const auto feeding = feed_for(model, word, options);
  std::vector<std::string> skipped;
  const auto run = [&](const data::Examples& from, const std::vector<int64_t>& order,
                       const char* doing, const auto& take) {
    int64_t done = 0;
    const auto lost = feed(from, order, reader, feeding, [&](Step&& step) {
      take(step);
      done += static_cast<int64_t>(step.examples.size());
      watch(done, static_cast<int64_t>(order.size()), doing);
    });
    skipped.insert(skipped.end(), lost.begin(), lost.end());
  };
  task->begin(model, reader, examples, options.settings);
  ordered_json training;
  if (task->trains()) {
    const auto& seen = measuring.seen;
    run(seen, measuring.drawn, "learning",
        [&](const Step& step) { task->learn(model, step, seen); });
    task->fit();
    training = {
        {"data", options.training.empty() ? options.data : options.training},
        {"split", seen.split},
        {"examples", measuring.drawn.size()}};
  }
  run(examples, order, "measuring", [&](const Step& step) { task->add(model, step, examples); });
  ordered_json record = {{"kind", "evaluate"},      {"model", model.location().weights.string()},
                         {"data", options.data},    {"source", examples.source},
                         {"split", examples.split}, {"task", word}};
  record.update(describe(task->score()));
  record["classes"] = examples.classes.size();
  add_prompts(word, examples, options.settings, record);
  if (!training.is_null()) {
    record["training"] = training;
  }
  auto notes = notes_on_inputs(reader, skipped);
  append(notes, measuring.notes);
  if (const auto one = only_class(examples, order); !one.empty() && word != "perplexity") {
    notes.push_back(c10::str(
        "all ", order.size(), " examples are of one class, '", one,
        "': a model that always names it would be right every time"));
  }
  if (options.feed.pack > 0) {
    record["pack"] = {{"length", options.feed.pack}, {"texts", order.size()}};
  }
  if (options.settings.head) {
    record["head"] = options.settings.head->about;
    append(notes, notes_on_head(*options.settings.head));
  }
  record["input"] = input;
  record["notes"] = notes;
  return record;
}

}  // namespace theseus::evaluate
