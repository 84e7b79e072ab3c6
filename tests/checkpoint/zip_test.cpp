#include "theseus/checkpoint/zip.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/bytes.h"
#include "tests/support/expect_error.h"
#include "tests/support/raw_zip.h"

namespace theseus::checkpoint {
namespace {

using tests::bytes_of;
using tests::error_of;
using tests::expect_parts;
using tests::raw_zip;
using tests::RawZipEntry;

std::string zip_error(const std::string& zip) {
  const auto message = error_of([&] { read_zip(bytes_of(zip), "x.zip"); });
  expect_parts(message, "x.zip");
  return message;
}

std::string content(const ZipEntry& entry) {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

TEST(Zip, EntriesArePartsOfTheFile) {
  for (const bool zip64 : {false, true}) {
    const auto zip = raw_zip({{.name = "b", .bytes = "xyz"}, {.name = "a/", .bytes = ""}}, zip64);
    const auto entries = read_zip(bytes_of(zip), "x.zip");
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].name, "a/");
    EXPECT_EQ(entries[1].name, "b");
    EXPECT_EQ(content(entries[1]), "xyz");
    EXPECT_GE(reinterpret_cast<const char*>(entries[1].bytes.data()), zip.data());
  }
  EXPECT_TRUE(read_zip(bytes_of(raw_zip({}, false)), "x.zip").empty());
}

TEST(Zip, CommentAndLocalPaddingAreSkipped) {
  auto zip = raw_zip({{.name = "a", .bytes = "abc", .local_extra = std::string(13, '\0')}}, false);
  zip[zip.size() - 2] = 5;
  zip += "hello";
  EXPECT_EQ(content(read_zip(bytes_of(zip), "x.zip").at(0)), "abc");
}

TEST(Zip, CompressedEntriesAreToldApart) {
  const auto zip =
      raw_zip({{.name = "a", .bytes = "abc", .method = 8, .size = 1'000'000'000}}, false);
  const auto entries = read_zip(bytes_of(zip), "x.zip");
  expect_parts(error_of([&] { require_stored(entries, "x.zip"); }), "'a' is compressed");
}

TEST(Zip, DamageIsRefused) {
  const auto with = [](const RawZipEntry& entry) { return zip_error(raw_zip({entry}, false)); };
  expect_parts(zip_error(""), "no end record");
  expect_parts(zip_error("PK\x03\x04"), "no end record");
  expect_parts(with({.name = "a", .bytes = "abc", .flags = 1}), "'a' is encrypted");
  expect_parts(with({.name = "a", .bytes = "abc", .size = 4}), "'a' is stored in 3 bytes but 4");
  expect_parts(with({.name = "a", .bytes = "abc", .local_name = "b"}), "'a' is called otherwise");
  expect_parts(with({.name = "a", .bytes = "abc", .position = 1}), "no local header at byte 1");
  expect_parts(with({.name = "a", .bytes = "abc", .position = 1'000'000}), "past the end");
  expect_parts(
      with({.name = "a", .bytes = "abc", .size = 90, .stored = 90}), "runs into the central");
  expect_parts(
      zip_error(raw_zip({{.name = "a", .bytes = "b"}, {.name = "a", .bytes = "c"}}, false)),
      "'a' appears twice");
  expect_parts(
      zip_error(
          raw_zip({{.name = "a", .bytes = ""}, {.name = "a", .bytes = "", .position = 0}}, false)),
      "overlap");
}

TEST(Zip, EveryTruncationAndDirectoryLieIsRefused) {
  for (const bool zip64 : {false, true}) {
    const auto zip = raw_zip({{.name = "a", .bytes = "abc"}}, zip64);
    for (size_t size = 0; size < zip.size(); ++size) {
      zip_error(zip.substr(0, size));
    }
    auto many = zip;
    many[many.size() - 22 + 10] = '\x7f';
    if (!zip64) {
      expect_parts(zip_error(many), "127 entries cannot fit");
    }
  }
}

}  // namespace
}  // namespace theseus::checkpoint
