// T5 was not trained on SNLI under a name of its own; the prompt is that of MNLI, which has the same answers.

#include "theseus/data/pair_task.h"

namespace theseus::data::sources {

const Source& snli() {
  static const Source source = source_of(
      {
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
      },
      "SNLI: snli_1.0_{train,dev,test}.jsonl (or .txt)");
  return source;
}

}  // namespace theseus::data::sources
