// By name only: tables of other GLUE tasks (WNLI) have the same names and columns.

#include "theseus/data/pair_task.h"

namespace theseus::data::sources {

const Source& rte() {
  static const Source source = source_of(
      {
          .title = "RTE",
          .folders = {"", "RTE"},
          .files =
              {{"train", "train.tsv", RecordForm::kTabs},
               {"val", "dev.tsv", RecordForm::kTabs},
               {"test", "test.tsv", RecordForm::kTabs},
               {"train", "train.jsonl"},
               {"val", "val.jsonl"},
               {"test", "test.jsonl"},
               {"train", "rte.train.jsonl"},
               {"val", "rte.val.jsonl"},
               {"test", "rte.test.jsonl"}},
          .fields =
              {{"premise", {"sentence1", "premise", "text"}},
               {"hypothesis", {"sentence2", "hypothesis", "text2"}}},
          .labels = {"label"},
          .classes = {"entailment", "not_entailment"},
          .test_is_unlabelled = true,
          .prompt = "rte sentence1: {premise} sentence2: {hypothesis}",
      },
      "RTE, by name only: {train,dev,test}.tsv as in GLUE, or {train,val,test}.jsonl as in "
      "SuperGLUE, or rte.{train,val,test}.jsonl",
      /*recognises=*/nullptr);
  return source;
}

}  // namespace theseus::data::sources
