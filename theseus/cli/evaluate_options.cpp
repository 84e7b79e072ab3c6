#include "theseus/cli/evaluate_options.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/numbers.h"
#include "theseus/evaluate/head.h"
#include "theseus/machine/suggest.h"

namespace theseus::cli {
namespace {

std::string task_list() {
  std::string words;
  for (const auto& [name, kind] : evaluate::all_tasks()) {
    words.append(words.empty() ? "" : ", ").append(name);
  }
  std::replace(words.begin(), words.end(), '_', '-');
  return words;
}

// "logistic", "ridge", or either with C, which is 1 unless it is said, as in "ridge:C=10".
void read_probe(const std::string& text, evaluate::Settings& settings) {
  const auto colon = text.find(':');
  const auto word = text.substr(0, colon);
  require(
      word == "logistic" || word == "ridge", "--probe: '", word, "' is none of: logistic ridge",
      machine::did_you_mean(word, "logistic ridge"));
  settings.ridge = word == "ridge";
  if (colon == std::string::npos) {
    return;
  }
  constexpr std::string_view kC = "C=";
  const auto option = text.substr(colon + 1);
  require(option.starts_with(kC), "--probe: '", option, "' is not C=NUMBER, as in ", word, ":C=10");
  const auto number = option.substr(kC.size());
  const auto error = number_from(1e-12, 1e12)(number);
  require(error.empty(), "--probe: C ", error);
  settings.strength = std::stod(number);
}

}  // namespace

void EvaluateOptions::add(CLI::App& app) {
  auto& how = given_;
  app.add_option("--data", how.data, "examples: PATH, or NAME:PATH for a layout by name")
      ->required();
  app.add_option(
         "--split", how.split, "train, val or test, or a part (default: test where there is one)")
      ->check(split_error);
  app.add_option("--task", how.task, task_list() + " (default: what model and data are made for)");
  app.add_option(
      "--template", how.settings.templates, "zero-shot prompt, {c} is the class; may be repeated");
  app.add_option("--training", how.training, "what the probe learns from (default: train split)");
  app.add_option("--training-limit", how.training_limit, "draw so many of them (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option(
      "--probe", probe_, "logistic (default) or ridge; as in ridge:C=10, less decay than by C=1");
  app.add_option("--wording", how.wording, "text from fields, as in 'premise: {premise}'");
  app.add_option("--second", how.second, "the second text of a pair");
  app.add_option("--answer", how.answer, "what the model should write");
  app.add_option("--max-length", how.longest, "tokens of a text (default: what the model takes)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app.add_option(
         "--pack", how.feed.pack, "of causal models: texts end to end in rows of so many tokens")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
  app.add_option("--new-tokens", how.settings.new_tokens, "of a summary, at most (default: 64)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--limit", how.limit, "draw so many examples (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--batch-size", how.feed.batch_size, "examples at a time")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add_seed(app, how.seed, "of what is drawn");
  app.add_option("--threads", threads_, "processor threads (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
}

evaluate::EvaluateOptions EvaluateOptions::read() const {
  auto result = given_;
  if (!probe_.empty()) {
    read_probe(probe_, result.settings);
  }
  if (threads_ > 0) {
    at::set_num_threads(static_cast<int>(threads_));
  }
  result.feed.threads = at::get_num_threads();
  if (!result.task.empty()) {
    evaluate::make_task(result.task);
  }
  return result;
}

void take_head(
    const std::string& path,
    const std::string& alignment,
    const model::Model& target,
    evaluate::EvaluateOptions& how,
    const evaluate::Watch& watch) {
  if (path.empty()) {
    return;
  }
  require(
      !alignment.empty(),
      "--head-from needs --alignment: maps from its base onto this model, as 'theseus align' makes "
      "them");
  how.settings.head = std::make_shared<const evaluate::Head>(
      evaluate::carry_head(path, alignment, target, how, watch));
}

std::string prompts_text(const nlohmann::ordered_json& record) {
  constexpr size_t kShown = 3;
  return record.contains("prompts")
             ? fmt::format(
                   "{:<12} {}\n", "prompts",
                   joined(record.at("prompts").get<std::vector<std::string>>(), kShown))
             : "";
}

std::string score_text(const nlohmann::ordered_json& record) {
  const std::string metric = record.at("metric");
  const double by = metric == "perplexity" ? 1 : 100;
  const auto* percent = by == 100 ? " %" : "";
  auto text = fmt::format(
      "{:<12} {:.2f}{} (95 % interval {:.2f} to {:.2f}), {} {}{}\n", metric,
      by * record.at("value").get<double>(), percent, by * record.at("low").get<double>(),
      by * record.at("high").get<double>(), record.at("count").get<int64_t>(),
      record.at("split").get<std::string>().empty() ? ""
                                                    : record.at("split").get<std::string>() + " ",
      record.contains("pack")
          ? fmt::format(
                "rows of {} tokens, of {} texts", record.at("pack").at("length").get<int64_t>(),
                record.at("pack").at("texts").get<int64_t>())
          : "examples");
  text += fmt::format(
      "{:<12} {} on {} ({})\n", "task", record.at("task").get<std::string>(),
      record.at("data").get<std::string>(), record.at("source").get<std::string>());
  if (record.contains("head")) {
    const auto& head = record.at("head");
    text += fmt::format(
        "{:<12} of {}, through the map of {}\n", "head", head.at("from").get<std::string>(),
        head.at("through").get<std::string>());
  }
  text += prompts_text(record);
  text += fmt::format("{:<12} {}\n", "input", record.at("input").get<std::string>());
  for (const auto& note : record.at("notes")) {
    text += "note: " + note.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace theseus::cli
