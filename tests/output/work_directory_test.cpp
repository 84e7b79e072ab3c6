#include "theseus/output/work_directory.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/made_files.h"
#include "theseus/output/text_file.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

Identity on(const std::string& device, const std::string& examples = "xxh3:1") {
  return [=] {
    return ordered_json{
        {"version", "1"}, {"device", device}, {"inputs", {{"the set of examples", examples}}}};
  };
}

// Leaves work as a process that was killed does: what a destructor removes is there.
void leave_work(const fs::path& out, bool fresh = false) {
  WorkDirectory work(out, on("cuda"), fresh);
  work.identify();
  work.keep();
  write_text(work.path() / kSolvedFile, "all maps are there\n");
  write_text(work.staged() / "config.json", "half");
}

TEST(Identity, KnowsTheWordsOfAnEarlierTheseus) {
  const auto old = ordered_json::parse(
      R"({"options": {"match": "tokens", "depth": "repeat", "heads": "true", "method": "identity",
          "labels": "true", "alpha": "2"}, "inputs": {"the calibration": "xxh3:1"}})");
  const auto now = ordered_json::parse(
      R"({"inputs": {"the set of examples": "xxh3:1"}, "options": {"alpha": "2", "method": "copy",
          "tokens": "text", "depth": "whole", "head": "carry"}})");
  EXPECT_EQ(nlohmann::json(comparable(old)), nlohmann::json(now));
}

// What had no new name is refused by its own.
TEST(Identity, NamesAnOptionThatIsGone) {
  const auto old = ordered_json::parse(R"({"options": {"center": "true"}, "inputs": {}})");
  const auto now = ordered_json::parse(R"({"options": {"method": "procrustes:center"}})");
  EXPECT_EQ(difference(comparable(old), now).what, "center was true and is now not given");
}

TEST(WorkDirectory, GoesOnWithAnotherDeviceAndSaysSo) {
  const tests::ScratchDir scratch;
  leave_work(scratch / "out");
  WorkDirectory work(scratch / "out", on("cpu"), false);
  EXPECT_TRUE(work.resumed());
  EXPECT_FALSE(fs::exists(work.staged() / "config.json"));
  ordered_json record = {{"notes", ordered_json::array()}};
  work.finish(kRecordFile, record);
  EXPECT_NE(
      record.at("notes").dump().find(R"(another device ([\"cuda\",\"cpu\"]))"), std::string::npos);
  EXPECT_FALSE(fs::exists(scratch / "out.partial"));
}

TEST(WorkDirectory, AChangedInputIsNotCalledAnotherCommand) {
  const tests::ScratchDir scratch;
  leave_work(scratch / "out");
  const auto message =
      tests::error_of([&] { WorkDirectory(scratch / "out", on("cuda", "xxh3:2"), false); });
  tests::expect_parts(
      message, "unfinished work of other inputs", "the set of examples has changed since",
      "as they were", "--fresh");
  EXPECT_TRUE(WorkDirectory(scratch / "out", on("cuda", "xxh3:2"), true).staged().has_filename());
}

// What nobody noted as made stays, whatever it is called, and is named.
TEST(WorkDirectory, WhatIsNotOnItsListStays) {
  for (const char* name :
       {"output/README.md", "output/model.safetensors", "output/empty", "stages"}) {
    const tests::ScratchDir scratch;
    leave_work(scratch / "out");
    const auto path = scratch / "out.partial" / name;
    if (path.has_extension()) {
      write_text(path, "mine");
    } else {
      fs::create_directories(path / "of mine");
    }
    for (const bool fresh : {false, true}) {
      const auto message =
          tests::error_of([&] { WorkDirectory(scratch / "out", on("cuda"), fresh); });
      tests::expect_parts(message, name, "not ours");
      EXPECT_TRUE(fs::exists(path)) << name;
    }
  }
}

TEST(WorkDirectory, ANumericErrorLeavesNoWork) {
  const tests::ScratchDir scratch;
  EXPECT_THROW(
      {
        WorkDirectory work(scratch / "out", on("cuda"), false);
        work.identify();
        work.keep();
        write_text(work.path() / kSolvedFile, "all maps are there\n");
        work.attempt([] { throw NumericError("the loss is not finite"); });
      },
      NumericError);
  EXPECT_FALSE(fs::exists(scratch / "out.partial"));
}

// What was learnt helps, whatever the next step comes to; the message says where it is.
TEST(WorkDirectory, ATrainingIsKeptAndItsMessageSaysWhere) {
  const tests::ScratchDir scratch;
  const auto message = tests::error_of<NumericError>([&] {
    WorkDirectory work(scratch / "out", on("cpu"), false);
    work.identify();
    work.keep();
    write_text(work.path() / kTrainingFile, "learnt");
    work.keeping<NumericError>([] { throw NumericError("the loss is not finite"); });
  });
  tests::expect_parts(
      message, "the loss is not finite", (scratch / "out.partial").string(), "--output-dtype");
  EXPECT_TRUE(fs::exists(scratch / "out.partial" / kTrainingFile));
  const auto other = tests::error_of<NumericError>([&] {
    WorkDirectory work(scratch / "other", on("cpu"), false);
    work.keep();
    work.keeping<NumericError>([] { throw NumericError("the loss is not finite"); });
  });
  EXPECT_EQ(other, "the loss is not finite");  // nothing was saved
  EXPECT_FALSE(fs::exists(scratch / "other.partial"));
}

// Work without what says whose it is, or how far it came, is not begun anew unasked.
TEST(WorkDirectory, WorkThatLostItsNamesIsRefused) {
  const struct {
    const char* there;
    const char* gone;
  } cases[] = {
      {kSolvedFile, kJobFile},
      {kWalkFile, kJobFile},
      {kTrainingFile, kJobFile},
      {kImitatedFile, kJobFile},
      {kWalkSavedFile, kWalkFile}};
  for (const auto& [there, gone] : cases) {
    const tests::ScratchDir scratch;
    leave_work(scratch / "out");
    const auto partial = scratch / "out.partial";
    fs::remove(partial / kSolvedFile);
    write_text(partial / there, "work");
    write_text(partial / "carried-0.json", "work");
    fs::remove(partial / gone);
    for (int again = 0; again < 2; ++again) {
      const auto message =
          tests::error_of([&] { WorkDirectory(scratch / "out", on("cuda"), false); });
      tests::expect_parts(message, "damaged", (partial / gone).string(), "--fresh");
      EXPECT_TRUE(fs::exists(partial / there));
      EXPECT_TRUE(fs::exists(partial / "carried-0.json"));
    }
    WorkDirectory(scratch / "out", on("cuda"), true);
    EXPECT_FALSE(fs::exists(partial));
  }
}

// How the output is stored is chosen at the end, so the work goes on with another choice.
TEST(WorkDirectory, GoesOnWithAnotherOutputDtype) {
  const auto with = [](const ordered_json& options) -> Identity {
    return [=] { return ordered_json{{"version", "1"}, {"options", options}}; };
  };
  const tests::ScratchDir scratch;
  {
    WorkDirectory work(scratch / "out", with({{"lr", 1}, {"output-dtype", "bfloat16"}}), false);
    work.identify();
    work.keep();
    write_text(work.path() / kTrainingFile, "learnt");
  }
  EXPECT_TRUE(WorkDirectory(scratch / "out", with({{"lr", 1}}), false).resumed());
  EXPECT_THROW(WorkDirectory(scratch / "out", with({{"lr", 2}}), false), InputError);
}

// A line that was cut off costs no name after it; a damaged lock or list is named, and --fresh is a way out where
// everything is ours.
TEST(WorkDirectory, ATornListOrLockIsMended) {
  const tests::ScratchDir scratch;
  leave_work(scratch / "out");
  const auto partial = scratch / "out.partial";
  write_text(partial / kMadeFile, read_text_file(partial / kMadeFile, 1000) + "output/mod");
  leave_work(scratch / "out");  // goes on
  EXPECT_TRUE(MadeFiles::read(partial / kMadeFile).contains("output/config.json"));
  write_text(partial / kMadeFile, "outp");
  tests::expect_parts(
      tests::error_of([&] { WorkDirectory(scratch / "out", on("cuda"), false); }),
      "output/config.json", (partial / kMadeFile).string(), "damaged");
  fs::remove_all(partial);

  for (const char* lock : {"", "theseu", "thesEus\n", "theseus\n\n"}) {
    leave_work(scratch / "out");
    write_text(partial / "carried-0.json", "work");
    write_text(partial / kLockFile, lock);
    tests::expect_parts(
        tests::error_of([&] { WorkDirectory(scratch / "out", on("cuda"), false); }),
        (partial / kLockFile).string(), "damaged", "--fresh");
    EXPECT_TRUE(fs::exists(partial / "carried-0.json"));
    leave_work(scratch / "out", /*fresh=*/true);
    EXPECT_FALSE(fs::exists(partial / "carried-0.json"));
    EXPECT_TRUE(WorkDirectory(scratch / "out", on("cuda"), false).resumed());
    fs::remove_all(partial);
  }
}

}  // namespace
}  // namespace theseus::output
