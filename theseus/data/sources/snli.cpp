// T5 was not trained on SNLI under a name of its own; the prompt is that of MNLI, which has the same answers.

#include "theseus/data/pair_task.h"

namespace theseus::data::sources {
namespace {

const PairTask& task() {
  static const PairTask task = {
      .title = "SNLI",
      .folders = {"", "snli_1.0"},
      .files =
          {{"train", "snli_1.0_train.jsonl"},
           {"val", "snli_1.0_dev.jsonl"},
           {"test", "snli_1.0_test.jsonl"},
           {"train", "snli_1.0_train.txt", RecordForm::kTabs},
           {"val", "snli_1.0_dev.txt", RecordForm::kTabs},
           {"test", "snli_1.0_test.txt", RecordForm::kTabs}},
      .fields =
          {{"premise", {"sentence1", "premise"}}, {"hypothesis", {"sentence2", "hypothesis"}}},
      .labels = {"gold_label"},
      .classes = {"entailment", "neutral", "contradiction"},
      .prompt = "mnli hypothesis: {hypothesis} premise: {premise}",
  };
  return task;
}

bool recognises(const std::filesystem::path& path) {
  return recognises_pair_task(task(), path);
}

Examples open(const std::filesystem::path& path, const std::string& split) {
  return open_pair_task(task(), path, split);
}

}  // namespace

const Source& snli() {
  static const Source source = {
      .summary = "SNLI: snli_1.0_{train,dev,test}.jsonl (or .txt)",
      .recognises = recognises,
      .open = open};
  return source;
}

}  // namespace theseus::data::sources
