#include "theseus/output/opened.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/temporary_directory.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/maps/method.h"
#include "theseus/output/added_tokens.h"
#include "theseus/output/model_card.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/side_files.h"
#include "theseus/output/supervision.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"
#include "theseus/transport/compatible.h"
#include "theseus/transport/depth.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

fs::path source_path(const JobOptions& options, const std::optional<transport::Alignment>& made) {
  if (!options.source.empty() || !made) {
    return options.source;
  }
  return made->about().at("source").at("path").get<std::string>();
}

ordered_json about_model(const fs::path& path, const model::Model& model) {
  return {
      {"path", fs::weakly_canonical(path).string()},
      {"family", model.location().family},
      {"fingerprint", checkpoint::fingerprint(model.checkpoint())}};
}

ordered_json about_examples(
    const stats::Calibration& calibration, const ordered_json& drawn, const JobOptions& options) {
  if (!drawn.is_null()) {
    auto about = drawn;
    about["sequences"] = calibration.sequences();
    about["batches"] = calibration.batches();
    about["batch_size"] = options.align.sampling.batch_size;
    return about;
  }
  ordered_json about = {
      {"path", fs::weakly_canonical(calibration.path()).string()},
      {"sequences", calibration.sequences()},
      {"available", calibration.available()},
      {"seed", options.align.sampling.seed},
      {"batches", calibration.batches()},
      {"batch_size", options.align.sampling.batch_size}};
  const auto fewer = options.align.sampling.fewer(calibration.available(), "sequences");
  if (!fewer.empty()) {
    about["fewer"] = fewer;
  }
  about["fingerprint"] = checkpoint::fingerprint(checkpoint::Checkpoint::open(calibration.path()));
  return about;
}

// From data: preprocessed once for both models, into a file that is gone from the directory as soon as it is
// open.
void prepare(const JobOptions& options, Opened& opened, const transport::Watch& watch) {
  const TemporaryDirectory directory("theseus-calibration");
  const auto file = directory.path() / "calibration.safetensors";
  const auto& processes = *options.align.processes;
  if (processes.first()) {
    opened.drawn = stats::prepare_calibration(
        choice_of(options), opened.source, opened.target, file, [&](int64_t done, int64_t all) {
          watch(static_cast<double>(done), static_cast<double>(all), "reading examples");
        });
  }
  processes.copy_from_first(file);
  opened.drawn = ordered_json::parse(processes.from_first(
      opened.drawn.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  opened.drawn["fingerprint"] = checkpoint::fingerprint(checkpoint::Checkpoint::open(file));
  opened.calibration = stats::Calibration::open(
      file, opened.source.architecture(), opened.target.architecture(),
      {.batch_size = options.align.sampling.batch_size});
}

// What every process of a job must have been given, and must have found in it.
void require_one_job(const JobOptions& options, const Opened& opened) {
  const auto& processes = *options.align.processes;
  if (processes.alone()) {
    return;
  }
  ordered_json mine = {
      {"the version", options.version},
      {"the source", checkpoint::fingerprint(opened.source.checkpoint())},
      {"the target", checkpoint::fingerprint(opened.target.checkpoint())}};
  if (opened.calibration) {
    mine["the set of examples"] =
        about_examples(*opened.calibration, opened.drawn, options).at("fingerprint");
  }
  for (const auto& [name, value] : options.words.items()) {
    mine["--" + name] = value;
  }
  const auto first = ordered_json::parse(
      processes.from_first(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  for (const auto* side : {&first, &std::as_const(mine)}) {
    for (const auto& [what, ignored] : side->items()) {
      const auto theirs = first.value(what, ordered_json("not given"));
      const auto ours = mine.value(what, ordered_json("not given"));
      require(
          ours == theirs, "the processes were not given the same: ", what, " is ", theirs.dump(),
          " for process 0 and ", ours.dump(), " for process ", processes.rank());
    }
  }
}

void open_examples(const JobOptions& options, Opened& opened, const transport::Watch& watch) {
  if (options.calibration.empty() || opened.alignment) {
    return;
  }
  if (!stats::is_prepared(options.calibration.string())) {
    prepare(options, opened, watch);
    return;
  }
  const auto& wording = options.wording;
  require(
      options.shots == 0 && options.split.empty() && options.longest == 0 && options.pack == 0 &&
          wording.first.empty() && wording.second.empty() && wording.answer.empty(),
      "--shots, --split, --max-length, --pack and --wording are for images and texts, and ",
      options.calibration.string(), " holds tensors");
  opened.calibration = stats::Calibration::open(
      options.calibration, opened.source.architecture(), opened.target.architecture(),
      options.align.sampling);
}

std::string hash_of_alignment(const fs::path& directory) {
  auto files = entries_of(directory);
  std::erase_if(files, [](const fs::path& file) {
    return file.extension() != ".safetensors" && file.filename() != kAlignmentRecord;
  });
  return hash_of_files(directory, std::move(files));
}

}  // namespace

stats::Choice choice_of(const JobOptions& options) {
  const auto& sampling = options.align.sampling;
  return {
      .data = options.calibration.string(),
      .split = options.split,
      .sampling = sampling,
      .shots = options.shots,
      .longest = options.longest,
      .labels = options.labels && options.labelled.empty(),
      .source_learns = maps::method(options.align.method).needs.gradients,
      .templates = options.templates,
      .wording = options.wording,
      .pack = options.pack};
}

// --fresh replaces an output, and must not take an input with it.
void require_apart(const JobOptions& options) {
  if (options.out.empty()) {
    return;
  }
  const auto normal = options.out.lexically_normal();
  const auto out = fs::weakly_canonical(normal.has_filename() ? normal : normal.parent_path());
  for (const auto& input :
       {options.source, options.tuned, options.target, options.calibration, options.labelled,
        options.alignment}) {
    const auto path = input.empty() ? input : fs::weakly_canonical(input);
    const auto meets = std::mismatch(out.begin(), out.end(), path.begin(), path.end());
    require(
        input.empty() || meets.first != out.end(), "--out: ", options.out.string(), " is or holds ",
        input.string(), ", which is needed");
    require(
        input.empty() || meets.second != path.end(), "--out: ", options.out.string(), " lies in ",
        input.string(), ", which is an input");
  }
}

// Tokens are matched to compare activations, or blocks.
void require_matched(const JobOptions& options, const Opened& opened) {
  const bool matches_blocks =
      opened.calibration && options.align.depth != transport::Depth::kStretch &&
      transport::depths_differ(opened.source.architecture(), opened.target.architecture());
  require(
      !options.words.contains("tokens") || opened.alignment || matches_blocks ||
          maps::method(options.align.method).needs.moments,
      "--tokens has no effect with method ", options.align.method,
      ", which uses no activations, and no blocks are matched here");
}

Opened open_all(const JobOptions& options, const transport::Watch& watch) {
  require_apart(options);
  require_labels_allowed(options);
  std::optional<transport::Alignment> alignment;
  if (!options.alignment.empty()) {
    alignment = transport::Alignment::open(options.alignment);
  }
  const model::OpenOptions open{.placement = options.placement};
  const auto source = source_path(options, alignment);
  const auto* moved = options.source.empty() && alignment
                          ? " that the alignment was made with (give --source if it has moved)"
                          : "";
  Opened opened{
      .source = with_context(
          c10::str("opening the source", moved), [&] { return model::Model::open(source, open); }),
      .target = with_context(
          "opening the target", [&] { return model::Model::open(options.target, open); }),
      .alignment = std::move(alignment)};
  transport::require_one_family(opened.source, opened.target);
  if (!options.labelled.empty()) {
    auto other = options;
    other.calibration = std::exchange(other.labelled, {});
    open_examples(other, opened, watch);
    opened.labelled = std::exchange(opened.calibration, {});
    opened.labelled_drawn = std::exchange(opened.drawn, {});
  }
  open_examples(options, opened, watch);
  require_matched(options, opened);
  if (!options.tuned.empty()) {
    opened.update = transport::SourceUpdate::open(options.tuned, opened.source);
    require_change(*opened.update, opened.source.architecture());
  }
  require_one_job(options, opened);
  return opened;
}

std::string hash_of_files(const fs::path& directory, std::vector<fs::path> files) {
  std::sort(files.begin(), files.end());
  std::vector<std::string> hashes(files.size());
  at::parallel_for(0, std::ssize(files), 1, [&](int64_t begin, int64_t end) {
    for (auto i = begin; i < end; ++i) {
      hashes[static_cast<size_t>(i)] = hash_of_file(files[static_cast<size_t>(i)]);
    }
  });
  std::string text;
  for (size_t i = 0; i < files.size(); ++i) {
    text += files[i].lexically_relative(directory).generic_string() + " " + hashes[i] + "\n";
  }
  return hash_of_text(text);
}

std::string hash_of_side_files(const fs::path& directory) {
  std::vector<fs::path> files;
  const auto add = [&](const fs::path& place, bool every) {
    for (const auto& entry : entries_of(place)) {
      std::error_code ignored;
      const bool config = entry.extension() == ".json" && entry.filename() != kRecordFile;
      const bool read = config || is_tokenizer_file(entry.filename().string());
      if ((every || read) && fs::is_regular_file(entry, ignored)) {
        files.push_back(entry);
      }
    }
  };
  add(directory, false);
  for (const auto& module : sentence_modules(directory)) {
    if (!module.path.empty()) {
      add(directory / module.path, true);
    }
  }
  return hash_of_files(directory, std::move(files));
}

ordered_json identity_of(const JobOptions& options, const Opened& opened) {
  ordered_json job = {
      {"version", options.version},
      {"options", deciding_options(options.words)},
      {"device", options.placement.device.is_cpu() ? "cpu" : "cuda"}};
  job["draw"] = options.align.sampling.wanted();
  if (!options.align.processes->alone()) {
    job["processes"] = options.align.processes->size();
  }
  auto& inputs = job["inputs"];
  for (const auto& [name, model] :
       {std::pair("the source", &opened.source), std::pair("the target", &opened.target)}) {
    inputs[name] = checkpoint::fingerprint(model->checkpoint());
    inputs[c10::str("the config of ", name)] = hash_of_file(model->location().config);
  }
  inputs["what lies beside the target"] =
      hash_of_copied_files(opened.target, {kRecordFile, kRecipeFile, kCardFile});
  if (opened.update) {
    inputs["the tuned model"] = opened.update->fingerprint();
    inputs["what lies beside the tuned model"] = hash_of_side_files(options.tuned);
    if (opened.update->added_rows() > 0) {  // its tokenizer tells which tokens were added
      inputs["what lies beside the source"] =
          hash_of_side_files(directory_of(opened.source.location()));
    }
  }
  if (!opened.drawn.is_null()) {
    inputs["what was drawn"] = opened.drawn.at("fingerprint");
  } else if (opened.calibration) {
    inputs["the set of examples"] =
        checkpoint::fingerprint(checkpoint::Checkpoint::open(options.calibration));
  }
  if (opened.labelled) {
    inputs["the set of labelled examples"] =
        about_examples(*opened.labelled, opened.labelled_drawn, options).at("fingerprint");
  }
  if (opened.alignment) {
    inputs["the alignment"] = hash_of_alignment(opened.alignment->directory());
  }
  return job;
}

ordered_json describe_examples(const JobOptions& options, const Opened& opened) {
  const auto& calibration = *opened.calibration;
  const auto there = [&](const char* key, int64_t otherwise) {
    return opened.drawn.is_null() ? otherwise : opened.drawn.value(key, otherwise);
  };
  return {
      {"used", there("examples", calibration.sequences())},
      {"of", there("available", calibration.available())},
      {"seed", options.align.sampling.seed}};
}

void require_same_bases(const Opened& opened) {
  const auto& alignment = *opened.alignment;
  for (const auto& [name, model] :
       {std::pair("source", &opened.source), std::pair("target", &opened.target)}) {
    const auto found = checkpoint::fingerprint(model->checkpoint());
    const auto& made = alignment.about().at(name);
    require(
        made.at("fingerprint") == found, "the alignment ", alignment.directory().string(),
        " was made for another ", name, ": ", made.at("path").get<std::string>(), " with ",
        made.at("fingerprint").get<std::string>(), "; this one is ", found);
  }
}

ordered_json describe_inputs(const JobOptions& options, const Opened& opened) {
  ordered_json result;
  result["source"] = about_model(
      options.source.empty() ? opened.source.location().weights : options.source, opened.source);
  if (opened.update) {
    result["tuned"] = {
        {"path", fs::weakly_canonical(options.tuned).string()},
        {"kind", opened.update->is_adapter() ? "adapter" : "dense"},
        {"fingerprint", opened.update->fingerprint()}};
  }
  result["target"] = about_model(options.target, opened.target);
  if (opened.calibration) {
    result["examples"] = about_examples(*opened.calibration, opened.drawn, options);
  }
  if (opened.labelled) {
    result["labelled"] = about_examples(*opened.labelled, opened.labelled_drawn, options);
  }
  if (opened.alignment) {
    result["alignment"] = fs::weakly_canonical(options.alignment).string();
    result["examples"] = opened.alignment->about().value("examples", nlohmann::json());
  }
  return result;
}

}  // namespace theseus::output
