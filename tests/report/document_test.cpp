#include "theseus/report/document.h"

#include <gtest/gtest.h>

#include "theseus/report/report.h"

#include "tests/report/samples.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::report {
namespace {

using tests::error_of;
using tests::expect_parts;

std::string refusal(const std::string& text) {
  return error_of([&] { make_page({read_document(text, "some.json")}); });
}

TEST(Document, KindsAreTold) {
  EXPECT_EQ(read_document(kTransportSample, "t").kind, Kind::kTransport);
  EXPECT_EQ(
      read_document(R"({"theseus": "0.1.0", "spaces": [], "towers": []})", "a").kind,
      Kind::kAlignment);
  EXPECT_EQ(read_document(kEvaluateSample, "e").kind, Kind::kEvaluate);
  EXPECT_EQ(read_document(kSweepSample, "s").kind, Kind::kSweep);
  EXPECT_EQ(read_document(kCompareSample, "c").kind, Kind::kCompare);
  EXPECT_EQ(read_document(kDiagnoseSample, "d").kind, Kind::kDiagnose);
}

TEST(Document, OthersAreRefusedByName) {
  expect_parts(refusal(R"({"kind": "poem"})"), "some.json", "the kind 'poem'", "evaluate, sweep");
  expect_parts(
      refusal(R"({"hidden_size": 768, "model_type": "bert"})"), "some.json",
      "not a document of theseus", "hidden_size, model_type", "theseus.json");
  expect_parts(refusal("{}"), "it holds nothing");
  expect_parts(refusal("[1]"), "expected a JSON object");
  expect_parts(refusal("{"), "not valid JSON");
  EXPECT_EQ(refusal("{\"kind\": \"\\u001b[31m\"}").find('\x1b'), std::string::npos);
}

TEST(Document, WrongTypesAreRefusedWithTheirPlace) {
  expect_parts(
      refusal(R"({"kind": "sweep", "curve": [{"alpha": 0, "value": 1}, {"alpha": "x"}]})"),
      "some.json: curve[1]", "alpha: expected a number", "x");
  expect_parts(refusal(R"({"kind": "compare", "rows": {"a": 1}})"), "rows: expected a list");
  expect_parts(refusal(R"({"kind": "compare", "rows": [3]})"), "rows[0]: expected an object");
  expect_parts(
      refusal(R"({"kind": "diagnose", "reasons": [3]})"), "reasons: expected a list of texts");
  expect_parts(
      refusal(R"({"theseus": "1", "spaces": [], "parameters": [],
                  "depth": {"mode": "divided", "similarity": [[1, 2], [3]]}})"),
      "similarity: expected rows of numbers, equally long");
}

TEST(Document, WhatItIsAboutMustBeThere) {
  expect_parts(refusal(R"({"kind": "evaluate"})"), "value is missing");
  expect_parts(refusal(R"({"kind": "sweep"})"), "curve is empty");
  expect_parts(refusal(R"({"kind": "sweep", "curve": [{"value": 1}]})"), "alpha is missing");
}

TEST(Document, ADirectoryGivesEveryDocumentInIt) {
  const tests::ScratchDir scratch;
  scratch.file("sweep.json", kSweepSample);
  scratch.file("theseus.json", kTransportSample);
  scratch.file("config.json", "{}");
  const auto found = read_run(scratch.path());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, Kind::kTransport);
  EXPECT_EQ(found[1].kind, Kind::kSweep);
  EXPECT_EQ(read_run(scratch / "sweep.json").size(), 1U);
}

TEST(Document, NothingToReportOn) {
  const tests::ScratchDir scratch;
  expect_parts(
      error_of([&] { read_run(scratch.path()); }), "nothing to report on", "alignment.json");
  expect_parts(error_of([&] { read_run(scratch / "none"); }), "there is no", "none");
}

TEST(Document, ShortNames) {
  EXPECT_EQ(short_name("/models/clip"), "clip");
  EXPECT_EQ(short_name("/models/clip/"), "clip");
  EXPECT_EQ(short_name("/models/clip/model.safetensors"), "clip/model.safetensors");
  EXPECT_EQ(short_name("/c/models--org--name/snapshots/1f2e"), "org/name");
  EXPECT_EQ(short_name("clip"), "clip");
  EXPECT_EQ(short_name(""), "");
}

}  // namespace
}  // namespace theseus::report
