#include "theseus/data/examples.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/data/ppm.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;
using tests::ppm;
using tests::ScratchDir;

TEST(Sources, EverySourceSaysWhatItReads) {
  std::set<std::string_view> summaries;
  for (const auto& row : all_sources()) {
    SCOPED_TRACE(row.name);
    EXPECT_GT(row.object->summary.size(), 20U);
    EXPECT_TRUE(summaries.insert(row.object->summary).second) << "another has the same summary";
    EXPECT_NE(row.object->open, nullptr);
  }
  EXPECT_GE(summaries.size(), 22U);
}

TEST(Sources, EverySourceRefusesAnEmptyFolder) {
  const ScratchDir scratch;
  for (const auto& row : all_sources()) {
    SCOPED_TRACE(row.name);
    if (row.object->recognises != nullptr) {
      EXPECT_FALSE(row.object->recognises(scratch.path()));
    }
    const auto name = std::string(row.name);
    const auto message = error_of([&] { open_examples(name + ":" + scratch.path().string(), ""); });
    expect_parts(message, scratch.path().string(), "while opening " + name);
  }
}

TEST(Sources, EverySourceRefusesAFileThatIsNotItsOwn) {
  const ScratchDir scratch;
  const auto file = scratch.file("nothing.bin", "");
  for (const auto& row : all_sources()) {
    SCOPED_TRACE(row.name);
    const auto name = std::string(row.name);
    expect_parts(error_of([&] { open_examples(name + ":" + file.string(), ""); }), file.string());
  }
}

// What helps is said, and not everything that there is.
TEST(OpenExamples, NoneRecognisesSaysWhatIsThere) {
  const ScratchDir scratch;
  const auto said = [&](const std::string& words) {
    auto text = error_of([&] { open_examples(words, ""); });
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_LT(text.size(), words.size() + 500) << text;
    EXPECT_EQ(text.find("webdataset"), std::string::npos) << text;
    return text;
  };
  expect_parts(said(scratch.path().string()), "NAME:PATH", "empty", "docs/data.md");
  scratch.file("a/1.ppm", ppm(9));
  scratch.file("a/2.ppm", ppm(9));
  expect_parts(said((scratch / "a").string()), "holds 1.ppm, 2.ppm", "a folder for each class");
  scratch.file("b/deep/er/1.ppm", ppm(9));
  expect_parts(said((scratch / "b").string()), "holds deep", "folders of classes need images");
  const auto rows = scratch.file("rows.jsonl", "{\"premise\": \"p\"}\n");
  expect_parts(said(rows.string()), "takes this file", "jsonl:PATH with --wording", "'text'");
  expect_parts(said(scratch.file("x.parquet", "PAR1").string()), "Parquet is not read");
  expect_parts(said(scratch.file("x.odd", "?").string()), "folders of images, or .jsonl");
  expect_parts(said((scratch / "absent").string()), "no such file or folder");
  expect_parts(
      said("eurosatt:" + scratch.path().string()), "'eurosatt' is no layout",
      "did you mean 'eurosat'?");
  expect_parts(
      error_of([&] { open_examples("nobody:here", ""); }), "nobody:here", "there are: cars");
  expect_parts(error_of([&] { open_examples("", ""); }), "NAME:PATH");
  expect_parts(error_of([&] { open_examples("folders:", ""); }), "no path after");
}

TEST(OpenExamples, APathWithAColonThatExistsWins) {
  const ScratchDir scratch;
  scratch.file("lines:a/cat/1.ppm", ppm(9));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  const auto examples = open_examples("lines:a", "");
  std::filesystem::current_path(before);
  EXPECT_EQ(examples.source, "folders");
  EXPECT_EQ(examples.classes, std::vector<std::string>{"cat"});
}

TEST(OpenExamples, AKnownLayoutGoesBeforeTheGeneralOne) {
  const ScratchDir scratch;
  // Class folders of images that are RESISC45's too.
  scratch.file("airplane/airplane_001.jpg", ppm(1));
  scratch.file("wetland/wetland_001.jpg", ppm(2));
  const auto path = scratch.path().string();
  EXPECT_EQ(open_examples(path, "").source, "resisc45");
  EXPECT_EQ(open_examples("folders:" + path, "").source, "folders");
}

TEST(OpenExamples, SeveralKnownLayoutsHaveToBeNamed) {
  const ScratchDir scratch;
  scratch.file("airplane/airplane_001.jpg", ppm(1));
  scratch.file("wetland/wetland_001.jpg", ppm(2));
  scratch.file("snli_1.0_test.jsonl", "{}\n");
  expect_parts(
      error_of([&] { open_examples(scratch.path().string(), ""); }), "several", "resisc45", "snli");
}

}  // namespace
}  // namespace theseus::data
