// The files say "entails"; the class is called "entailment" here, a word that T5 answers to the prompt of MNLI.
// T5 has no prompt for this task.

#include "theseus/data/pair_task.h"

namespace theseus::data::sources {

const Source& scitail() {
  const std::vector<std::string> columns = {"premise", "hypothesis", "label"};
  static const Source source = source_of(
      {
          .title = "SciTail",
          .folders = {"", "SciTailV1.1"},
          .files =
              {{"train", "snli_format/scitail_1.0_train.txt"},
               {"val", "snli_format/scitail_1.0_dev.txt"},
               {"test", "snli_format/scitail_1.0_test.txt"},
               {"train", "tsv_format/scitail_1.0_train.tsv", RecordForm::kTabs, columns},
               {"val", "tsv_format/scitail_1.0_dev.tsv", RecordForm::kTabs, columns},
               {"test", "tsv_format/scitail_1.0_test.tsv", RecordForm::kTabs, columns}},
          .fields =
              {{"premise", {"sentence1", "premise"}}, {"hypothesis", {"sentence2", "hypothesis"}}},
          .labels = {"gold_label", "label"},
          .classes = {"entailment", "neutral"},
          .synonyms = {{"entails", "entailment"}},
          .prompt = "mnli hypothesis: {hypothesis} premise: {premise}",
      },
      "SciTail: snli_format/scitail_1.0_{train,dev,test}.txt, or tsv_format/*.tsv");
  return source;
}

}  // namespace theseus::data::sources
