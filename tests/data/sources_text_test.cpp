// A small replica of every layout is written and opened.

#include <thread>

#include <gtest/gtest.h>

#include "theseus/data/examples.h"
#include "theseus/data/wording.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;
using tests::ScratchDir;
using Labels = std::vector<int64_t>;
using Names = std::vector<std::string>;

Examples open(const std::filesystem::path& path, const std::string& split = "") {
  return open_examples(path.string(), split);
}

std::string refusal(
    const std::string& name, const std::filesystem::path& path, const char* split = "") {
  return error_of([&] { open_examples(name + ":" + path.string(), split); });
}

// First, second and answer of one example, worded for models that write answers.
Names prompted(const Examples& examples, int64_t index) {
  const auto* name =
      examples.labels.empty() ? nullptr : &examples.classes.at(examples.labels.at(index));
  const auto& wording = examples.prompted.first.empty() ? examples.wording : examples.prompted;
  const auto worded = fill(wording, examples.text(index), name);
  return {worded.first, worded.second, worded.answer};
}

Names worded(const Examples& examples, int64_t index) {
  const auto words = fill(examples.wording, examples.text(index), nullptr);
  return {words.first, words.second};
}

// ---- jsonl, tsv, lines

TEST(Jsonl, ReadsFieldsOfAnyKind) {
  const ScratchDir scratch;
  const auto file = scratch.file(
      "a.jsonl",
      "\xef\xbb\xbf{\"text\": \"caf\\u00e9\", \"label\": 1, \"n\": 2.5, \"none\": null, \"l\": "
      "[1]}\r\n"
      "\n{\"text\": \"b\", \"label\": 0}");
  const auto examples = open(file);
  EXPECT_EQ(examples.source, "jsonl");
  EXPECT_EQ(examples.split, "");
  EXPECT_EQ(examples.labels, (Labels{1, 0}));
  EXPECT_EQ(examples.classes, Names{});
  EXPECT_EQ(
      examples.text(0),
      (Fields{{"text", "caf\xc3\xa9"}, {"label", "1"}, {"n", "2.5"}, {"l", "[1]"}}));
  EXPECT_EQ(examples.names[1], file.string() + ":3");
  EXPECT_EQ(worded(examples, 1), (Names{"b", ""}));
  expect_parts(refusal("jsonl", file, "train"), "not divided");
}

TEST(Jsonl, FindsSplitsByPrefixAndClassesBeside) {
  const ScratchDir scratch;
  scratch.file(
      "nli.train.jsonl", R"({"text": "a", "text2": "b", "label": "no"})"
                         "\n");
  scratch.file(
      "nli.test.jsonl", R"({"text": "c", "text2": "d", "label": 1})"
                        "\n");
  scratch.file("nli.json", R"({"classes": ["yes", "no"]})");
  const auto test = open(scratch / "nli");
  EXPECT_EQ(test.split, "test");
  EXPECT_EQ(test.classes, (Names{"yes", "no"}));
  EXPECT_EQ(worded(test, 0), (Names{"c", "d"}));
  EXPECT_EQ(open(scratch / "nli", "train").labels, Labels{1});
  EXPECT_EQ(open(scratch / "nli.train.jsonl", "train").labels, Labels{1});
  expect_parts(refusal("jsonl", scratch / "nli.train.jsonl", "test"), "no test split");
  expect_parts(refusal("jsonl", scratch / "nli", "val"), "no val split", "test, train");
}

TEST(Jsonl, NamesOfAllSplitsAreTheClasses) {
  const ScratchDir scratch;
  scratch.file(
      "train.jsonl",
      "{\"text\": \"a\", \"labels\": \"x\"}\n{\"text\": \"b\", \"labels\": \"y\"}\n");
  scratch.file("dev.jsonl", "{\"text\": \"a\", \"labels\": \"y\"}\n");
  const auto val = open(scratch.path());
  EXPECT_EQ(val.split, "val");
  EXPECT_EQ(val.labels, Labels{1});
  EXPECT_EQ(val.classes, (Names{"x", "y"}));
  scratch.file("valid.jsonl", "{}\n");
  expect_parts(refusal("jsonl", scratch.path()), "dev.jsonl", "valid.jsonl", "val split");
}

TEST(Jsonl, RefusesBadRecords) {
  const ScratchDir scratch;
  const auto message = [&](const char* content) {
    return refusal("jsonl", scratch.file("a.jsonl", content));
  };
  expect_parts(message("{\"text\": \"a\"}\n{oops\n"), "a.jsonl:2", "not valid JSON");
  expect_parts(message("[1]\n"), "a.jsonl:1", "object");
  expect_parts(message("{\"text\": 1, \"text\": 2}\n"), "twice");
  expect_parts(message("{\"label\": 1}\n{\"text\": \"a\"}\n"), "a.jsonl:2", "no label");
  expect_parts(message("{\"label\": -1}\n"), "out of range");
  expect_parts(message("{\"label\": 1}\n{\"label\": \"a\"}\n"), "all numbers or all");
  expect_parts(message("\n"), "no records");
}

TEST(Jsonl, IsReadByManyThreads) {
  const ScratchDir scratch;
  std::string content;
  for (int i = 0; i < 200; ++i) {
    content += "{\"text\": \"" + std::to_string(i) + "\"}\n";
  }
  const auto examples = open(scratch.file("a.jsonl", content));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        right += examples.text(i).at("text") == std::to_string(i) ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(right, 800);
}

TEST(Jsonl, RealTexts) {
  const auto path = std::filesystem::path(THESEUS_SOURCE_DIR) / "../shared/data/text/rte";
  if (!std::filesystem::exists(path.string() + ".json")) {
    GTEST_SKIP() << "needs ../shared/data/text";
  }
  const auto examples = open(path);
  EXPECT_EQ(examples.source, "jsonl");
  EXPECT_EQ(examples.split, "test");
  EXPECT_EQ(examples.classes.size(), 2U);
  EXPECT_EQ(examples.wording.second, "{text2}");
}

TEST(Tsv, QuotesAreLetters) {
  const ScratchDir scratch;
  const auto file = scratch.file("a.tsv", "text\tlabel\n\"quoted\tgood\nplain, \"x\tbad\n");
  const auto examples = open(file);
  EXPECT_EQ(examples.source, "tsv");
  EXPECT_EQ(examples.classes, (Names{"bad", "good"}));
  EXPECT_EQ(examples.labels, (Labels{1, 0}));
  EXPECT_EQ(examples.text(0).at("text"), "\"quoted");
  EXPECT_EQ(examples.text(1).at("text"), "plain, \"x");
  expect_parts(
      refusal("tsv", scratch.file("b.tsv", "text\tlabel\na\n")), "b.tsv:2", "1 fields",
      "text, label");
}

TEST(Lines, AreTextsWithoutLabels) {
  const ScratchDir scratch;
  const auto file = scratch.file("a.txt", "first {line}\r\n\n  second\n");
  const auto examples = open(file);
  EXPECT_EQ(examples.source, "lines");
  EXPECT_EQ(examples.size(), 2);
  EXPECT_TRUE(examples.labels.empty());
  EXPECT_EQ(worded(examples, 0), (Names{"first {line}", ""}));
  EXPECT_EQ(examples.names[1], file.string() + ":3");
  expect_parts(refusal("lines", scratch.file("b.txt", " \n")), "no text");
}

// ---- tasks

TEST(Snli, LeavesOutWhatNobodyAgreedOn) {
  const ScratchDir scratch;
  scratch.file(
      "snli_1.0/snli_1.0_test.jsonl",
      R"({"gold_label": "-", "sentence1": "a", "sentence2": "b", "annotator_labels": ["x"]})"
      "\n"
      R"({"gold_label": "contradiction", "sentence1": "A man.", "sentence2": "No man."})"
      "\n");
  const auto test = open(scratch.path());
  EXPECT_EQ(test.source, "snli");
  EXPECT_EQ(test.split, "test");
  EXPECT_EQ(test.labels, Labels{2});
  EXPECT_EQ(test.classes, (Names{"entailment", "neutral", "contradiction"}));
  EXPECT_EQ(test.text(0), (Fields{{"premise", "A man."}, {"hypothesis", "No man."}}));
  EXPECT_EQ(worded(test, 0), (Names{"A man.", "No man."}));
  EXPECT_EQ(
      prompted(test, 0), (Names{"mnli hypothesis: No man. premise: A man.", "", "contradiction"}));
  scratch.file(
      "snli_1.0_test.jsonl", R"({"gold_label": "maybe", "sentence1": "", "sentence2": ""})");
  expect_parts(refusal("snli", scratch.path()), ":1", "unknown class 'maybe'");
  scratch.file("snli_1.0_test.jsonl", R"({"gold_label": "neutral", "sentence1": ""})");
  expect_parts(refusal("snli", scratch.path()), "no hypothesis", "sentence2");
  scratch.file("snli_1.0_test.jsonl", R"({"gold_label": "-", "sentence1": "", "sentence2": ""})");
  expect_parts(refusal("snli", scratch.path()), "no records with a label");
}

TEST(Mnli, ReadsGlueWhereTheTestHasNoLabels) {
  const ScratchDir scratch;
  scratch.file(
      "MNLI/train.tsv",
      "index\tsentence1\tsentence2\tlabel1\tgold_label\n"
      "0\tp\th\tneutral\tneutral\n");
  scratch.file(
      "MNLI/dev_matched.tsv",
      "index\tsentence1\tsentence2\tgold_label\n"
      "0\tp \"q\th\tentailment\n1\tp\th\t-\n");
  scratch.file("MNLI/test_matched.tsv", "index\tsentence1\tsentence2\n0\tp\th\n");
  const auto val = open(scratch.path());
  EXPECT_EQ(val.source, "mnli");
  EXPECT_EQ(val.split, "val");
  EXPECT_EQ(val.labels, Labels{0});
  EXPECT_EQ(prompted(val, 0), (Names{"mnli hypothesis: h premise: p \"q", "", "entailment"}));
  EXPECT_EQ(open(scratch.path(), "train").labels, Labels{1});
  const auto test = open(scratch.path(), "test");
  EXPECT_EQ(test.size(), 1);
  EXPECT_TRUE(test.labels.empty());
}

TEST(Rte, IsReadByName) {
  const ScratchDir scratch;
  scratch.file("dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\tp\th\tnot_entailment\n");
  expect_parts(error_of([&] { open(scratch.path()); }), "NAME:PATH");
  const auto val = open_examples("rte:" + scratch.path().string(), "");
  EXPECT_EQ(val.split, "val");
  EXPECT_EQ(val.labels, Labels{1});
  EXPECT_EQ(prompted(val, 0), (Names{"rte sentence1: p sentence2: h", "", "not_entailment"}));
  scratch.file(
      "train.jsonl", R"({"premise": "p", "hypothesis": "h", "label": "entailment", "idx": 0})");
  EXPECT_EQ(open_examples("rte:" + scratch.path().string(), "train").labels, Labels{0});
  const ScratchDir other;
  other.file("rte.test.jsonl", R"({"label": 1, "text": "p", "text2": "h"})");
  const auto named = open_examples("rte:" + other.path().string(), "");
  EXPECT_EQ(named.split, "test");
  EXPECT_EQ(prompted(named, 0), (Names{"rte sentence1: p sentence2: h", "", "not_entailment"}));
}

TEST(Qnli, IsReadByName) {
  const ScratchDir scratch;
  scratch.file("QNLI/dev.tsv", "index\tquestion\tsentence\tlabel\n0\tWho?\tHe.\tentailment\n");
  const auto val = open_examples("qnli:" + scratch.path().string(), "val");
  EXPECT_EQ(val.labels, Labels{0});
  EXPECT_EQ(worded(val, 0), (Names{"Who?", "He."}));
  EXPECT_EQ(prompted(val, 0), (Names{"qnli question: Who? sentence: He.", "", "entailment"}));
  scratch.file("QNLI/dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n");
  expect_parts(refusal("qnli", scratch.path()), "no question", "sentence1");
}

TEST(Scitail, ReadsBothFormats) {
  const ScratchDir scratch;
  scratch.file(
      "snli_format/scitail_1.0_test.txt",
      R"({"gold_label": "entails", "sentence1": "p", "sentence2": "h"})"
      "\n");
  scratch.file("tsv_format/scitail_1.0_train.tsv", "p\th\tneutral\np2\th2\tentails\n");
  const auto test = open(scratch.path());
  EXPECT_EQ(test.source, "scitail");
  EXPECT_EQ(test.classes, (Names{"entailment", "neutral"}));
  EXPECT_EQ(prompted(test, 0), (Names{"mnli hypothesis: h premise: p", "", "entailment"}));
  const auto train = open(scratch.path(), "train");
  EXPECT_EQ(train.labels, (Labels{1, 0}));
  EXPECT_EQ(train.text(1).at("premise"), "p2");
}

TEST(CnnDailymail, AsksForTheHighlights) {
  const ScratchDir scratch;
  scratch.file(
      "test.csv",
      "id,article,highlights\n1,\"One, \"\"two\"\"\nand three.\",\"Short\nsum.\"\n2,b,c\n");
  scratch.file("validation.jsonl", R"({"article": "x", "highlights": "y"})");
  const auto test = open(scratch.path());
  EXPECT_EQ(test.source, "cnn_dailymail");
  EXPECT_EQ(test.size(), 2);
  EXPECT_EQ(prompted(test, 0), (Names{"summarize: One, \"two\"\nand three.", "", "Short\nsum."}));
  expect_parts(test.names[1], "test.csv:5");
  EXPECT_EQ(prompted(open(scratch.path(), "val"), 0), (Names{"summarize: x", "", "y"}));
  expect_parts(refusal("cnn_dailymail", scratch.file("x.csv", "id,article\n1,a\n")), "highlights");
}

}  // namespace
}  // namespace theseus::data
