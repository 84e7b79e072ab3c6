#include "theseus/data/pair_task.h"

namespace theseus::data::sources {

const Source& qnli() {
  static const Source source = source_of(
      {
          .title = "QNLI",
          .folders = {"", "QNLI"},
          .files =
              {{"train", "train.tsv", RecordForm::kTabs},
               {"val", "dev.tsv", RecordForm::kTabs},
               {"test", "test.tsv", RecordForm::kTabs},
               {"train", "train.jsonl"},
               {"val", "val.jsonl"},
               {"test", "test.jsonl"}},
          .fields = {{"question", {"question"}}, {"sentence", {"sentence"}}},
          .labels = {"label"},
          .classes = {"entailment", "not_entailment"},
          .test_is_unlabelled = true,
          .prompt = "qnli question: {question} sentence: {sentence}",
      },
      "QNLI, by name only: {train,dev,test}.tsv as in GLUE", /*recognises=*/nullptr);
  return source;
}

}  // namespace theseus::data::sources
