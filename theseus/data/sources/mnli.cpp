#include "theseus/data/listing.h"
#include "theseus/data/pair_task.h"

namespace theseus::data::sources {
namespace {

bool has_mnli(const PairTask&, const std::filesystem::path& path) {
  // GLUE calls every training table train.tsv.
  return find_below(
             path, {"dev_matched.tsv", "MNLI/dev_matched.tsv", "multinli_1.0_train.jsonl",
                    "multinli_1.0/multinli_1.0_train.jsonl", "multinli_1.0_dev_matched.jsonl"})
      .has_value();
}

}  // namespace

const Source& mnli() {
  static const Source source = source_of(
      {
          .title = "MultiNLI",
          .folders = {"", "MNLI", "multinli_1.0"},
          .files =
              {{"train", "multinli_1.0_train.jsonl"},
               {"val", "multinli_1.0_dev_matched.jsonl"},
               {"train", "train.tsv", RecordForm::kTabs},
               {"val", "dev_matched.tsv", RecordForm::kTabs},
               {"test", "test_matched.tsv", RecordForm::kTabs}},
          .fields =
              {{"premise", {"sentence1", "premise"}}, {"hypothesis", {"sentence2", "hypothesis"}}},
          .labels = {"gold_label"},
          .classes = {"entailment", "neutral", "contradiction"},
          .test_is_unlabelled = true,
          .prompt = "mnli hypothesis: {hypothesis} premise: {premise}",
      },
      "MultiNLI: GLUE's {train,dev_matched,test_matched}.tsv, or "
      "multinli_1.0_{train,dev_matched}.jsonl",
      has_mnli);
  return source;
}

}  // namespace theseus::data::sources
