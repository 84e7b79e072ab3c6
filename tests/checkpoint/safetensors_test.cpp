#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/checkpoint/dtype.h"

#include "tests/support/expect_error.h"
#include "tests/support/raw_safetensors.h"
#include "tests/support/scratch_dir.h"

namespace theseus::checkpoint {
namespace {

using tests::error_of;
using tests::expect_parts;
using tests::one_tensor;
using tests::raw_safetensors;

std::string content_error(const std::string& content) {
  const tests::ScratchDir dir;
  const auto path = dir.file("x.safetensors", content);
  const auto message = error_of([&] { Checkpoint::open(path); });
  expect_parts(message, path.string());
  return message;
}

at::Tensor open_one(const std::string& content) {
  const tests::ScratchDir dir;
  return Checkpoint::open(dir.file("x.safetensors", content)).tensor("t");
}

std::string zero_bytes(size_t count) {
  return std::string(count, '\0');
}

struct BadCase {
  const char* name;
  std::string content;
  std::vector<std::string> parts;
};

void PrintTo(const BadCase& bad, std::ostream* out) {
  *out << bad.name;
}

class BadSafetensors : public testing::TestWithParam<BadCase> {};

TEST_P(BadSafetensors, IsRefusedWithItsReason) {
  const auto message = content_error(GetParam().content);
  for (const auto& part : GetParam().parts) {
    expect_parts(message, part);
  }
}

const std::string kTwo = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"U8","shape":[4],"data_offsets":)";

INSTANTIATE_TEST_SUITE_P(
    Files,
    BadSafetensors,
    testing::Values(
        BadCase{"shorter_than_length", "\x08\0\0\0", {"truncated", "8-byte header length"}},
        BadCase{
            "length_over_limit",
            raw_safetensors(100'000'001, "{}", ""),
            {"100000001 bytes", "at most 100000000"}},
        BadCase{
            "length_past_end",
            raw_safetensors(64, "{}", ""),
            {"truncated", "header is 64 bytes", "only 2 bytes"}},
        BadCase{"not_object", raw_safetensors("[1,2]   ", ""), {"not a JSON object", "[1,2]"}},
        BadCase{"no_header", raw_safetensors("", ""), {"not a JSON object"}},
        BadCase{"not_json", raw_safetensors("{\"a\":", ""), {"not valid JSON"}},
        BadCase{"not_utf8", raw_safetensors("{\"\xff\":{}}", ""), {"not valid JSON"}},
        BadCase{
            "record_not_object",
            raw_safetensors(R"({"t":[1]})", ""),
            {"t: expected an object, found a list"}},
        BadCase{
            "no_dtype",
            raw_safetensors(R"({"t":{"shape":[],"data_offsets":[0,4]}})", zero_bytes(4)),
            {"t.dtype is missing"}},
        BadCase{
            "no_shape",
            raw_safetensors(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", zero_bytes(4)),
            {"t.shape is missing"}},
        BadCase{
            "no_offsets",
            raw_safetensors(R"({"t":{"dtype":"F32","shape":[]}})", zero_bytes(4)),
            {"t.data_offsets is missing"}},
        BadCase{
            "dtype_number",
            raw_safetensors(one_tensor("5", "[1]", "[0,4]"), zero_bytes(4)),
            {"t.dtype", "expected a string"}},
        BadCase{
            "dtype_unknown",
            raw_safetensors(one_tensor("\"F99\"", "[1]", "[0,4]"), zero_bytes(4)),
            {"t.dtype: unknown dtype 'F99'", "BF16"}},
        BadCase{
            "shape_number",
            raw_safetensors(one_tensor("\"F32\"", "1", "[0,4]"), zero_bytes(4)),
            {"t.shape", "list of integers, found 1"}},
        BadCase{
            "shape_float",
            raw_safetensors(one_tensor("\"F32\"", "[1.0]", "[0,4]"), zero_bytes(4)),
            {"t.shape", "list of integers"}},
        BadCase{
            "shape_text",
            raw_safetensors(one_tensor("\"F32\"", "[\"1\"]", "[0,4]"), zero_bytes(4)),
            {"t.shape", "list of integers"}},
        BadCase{
            "shape_negative",
            raw_safetensors(one_tensor("\"F32\"", "[-1]", "[0,4]"), zero_bytes(4)),
            {"t.shape", "-1 is negative"}},
        BadCase{
            "shape_overflow",
            raw_safetensors(one_tensor("\"F32\"", "[4294967296,4294967296]", "[0,0]"), ""),
            {"t.shape", "overflows 64 bits"}},
        BadCase{
            "empty_overflow",
            raw_safetensors(one_tensor("\"F32\"", "[0,4611686018427387904,4]", "[0,0]"), ""),
            {"t.shape", "overflows 64 bits"}},
        BadCase{
            "bytes_overflow",
            raw_safetensors(one_tensor("\"F32\"", "[4611686018427387904]", "[0,0]"), ""),
            {"t.shape", "fits 64 bits"}},
        BadCase{
            "too_large_integer",
            raw_safetensors(
                one_tensor("\"F32\"", "[18446744073709551615]", "[0,4]"), zero_bytes(4)),
            {"t.shape"}},
        BadCase{
            "half_byte",
            raw_safetensors(one_tensor("\"F4\"", "[3]", "[0,2]"), zero_bytes(2)),
            {"t.shape", "whole number of bytes"}},
        BadCase{
            "offsets_one",
            raw_safetensors(one_tensor("\"F32\"", "[1]", "[4]"), zero_bytes(4)),
            {"t.data_offsets", "found 1 numbers"}},
        BadCase{
            "offsets_negative",
            raw_safetensors(one_tensor("\"F32\"", "[1]", "[-4,0]"), zero_bytes(4)),
            {"t.data_offsets", "-4 is negative"}},
        BadCase{
            "offsets_reversed",
            raw_safetensors(one_tensor("\"F32\"", "[1]", "[4,0]"), zero_bytes(4)),
            {"t.data_offsets", "reversed"}},
        BadCase{
            "offsets_past_end",
            raw_safetensors(one_tensor("\"F32\"", "[2]", "[0,8]"), zero_bytes(4)),
            {"t.data_offsets", "end 8 is past the end", "4 bytes long"}},
        BadCase{
            "size_mismatch",
            raw_safetensors(one_tensor("\"F32\"", "[2]", "[0,4]"), zero_bytes(4)),
            {"t.data_offsets", "4 bytes, but [2] of F32 takes 8"}},
        BadCase{
            "not_from_zero",
            raw_safetensors(one_tensor("\"F32\"", "[1]", "[4,8]"), zero_bytes(8)),
            {"tensor 't' begins at 4", "hole after 0"}},
        BadCase{
            "bytes_left",
            raw_safetensors(one_tensor("\"F32\"", "[1]", "[0,4]"), zero_bytes(9)),
            {"end at 4", "9 bytes long"}},
        BadCase{
            "hole",
            raw_safetensors(kTwo + "[5,9]}}", zero_bytes(9)),
            {"tensor 'b' begins at 5", "hole after 4"}},
        BadCase{
            "overlap",
            raw_safetensors(kTwo + "[3,7]}}", zero_bytes(7)),
            {"tensor 'b' begins at 3", "overlapping", "ends at 4"}},
        BadCase{"same_place", raw_safetensors(kTwo + "[0,4]}}", zero_bytes(4)), {"overlapping"}},
        BadCase{
            "duplicate",
            raw_safetensors(
                R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                ""),
            {"'t' appears twice"}},
        BadCase{
            "metadata_list",
            raw_safetensors(R"({"__metadata__":[]})", ""),
            {"__metadata__: expected an object"}},
        BadCase{
            "metadata_number",
            raw_safetensors(R"({"__metadata__":{"epoch":3}})", ""),
            {"__metadata__.epoch: expected a string"}},
        BadCase{
            "too_deep",
            raw_safetensors("{\"t\":" + std::string(5000, '[') + std::string(5000, ']') + "}", ""),
            {"nested deeper"}},
        BadCase{
            "lfs_pointer",
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            {"Git LFS pointer", "git lfs pull"}},
        BadCase{"empty", "", {"not a checkpoint", "empty"}},
        BadCase{"html", "<!DOCTYPE html><html>", {"begins with '<!DOCTYPE html>"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Safetensors, TooManyDimensionsAreRefused) {
  std::string shape = "[1";
  for (int i = 0; i < 64; ++i) {
    shape += ",1";
  }
  expect_parts(
      content_error(raw_safetensors(one_tensor("\"F32\"", shape + "]", "[0,4]"), zero_bytes(4))),
      "t.shape", "65 dimensions");
}

TEST(Safetensors, ScalarsAndEmptyTensorsAreValid) {
  EXPECT_EQ(
      open_one(raw_safetensors(one_tensor("\"I64\"", "[]", "[0,8]"), zero_bytes(8))).dim(), 0);
  const auto empty = open_one(raw_safetensors(one_tensor("\"F32\"", "[3,0]", "[0,0]"), ""));
  EXPECT_EQ(empty.sizes(), (std::vector<int64_t>{3, 0}));
  const tests::ScratchDir dir;
  EXPECT_TRUE(
      Checkpoint::open(dir.file("x.safetensors", raw_safetensors("{}", ""))).tensors().empty());
}

TEST(Safetensors, TensorIsAViewOfTheFileUnlessMisaligned) {
  const tests::ScratchDir dir;
  // 'a' is one byte, so 't' behind it is misaligned for its four-byte elements.
  const auto header = std::string(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                  R"("t":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})");
  std::string data = zero_bytes(9);
  const float values[] = {1.5F, -2.0F};
  std::memcpy(data.data() + 1, values, sizeof(values));
  const auto path = dir.file("x.safetensors", raw_safetensors(header, data));
  const auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(at::equal(checkpoint.tensor("t"), at::tensor({1.5F, -2.0F})));
  EXPECT_EQ(checkpoint.tensor("a").data_ptr(), checkpoint.tensor("a").data_ptr());
  EXPECT_NE(checkpoint.tensor("t").data_ptr(), checkpoint.tensor("t").data_ptr());
}

TEST(Safetensors, TensorOutlivesCheckpointAndFile) {
  std::string data(4, '\0');
  const float value = 2.5F;
  std::memcpy(data.data(), &value, sizeof(value));
  EXPECT_EQ(
      open_one(raw_safetensors(one_tensor("\"F32\"", "[1]", "[0,4]"), data)).item<float>(), 2.5F);
}

TEST(Safetensors, EveryDtypeIsListedAndUsableOrRefusedByName) {
  const std::set<std::string_view> usable = {"F32", "F16", "BF16", "F64", "I64",
                                             "I32", "I16", "I8",   "U8",  "BOOL"};
  for (const Dtype& dtype : all_dtypes()) {
    const auto word = std::string(dtype.word);
    const auto bytes = std::to_string(dtype.bits);  // of eight elements
    const auto header = one_tensor("\"" + word + "\"", "[8]", "[0," + bytes + "]");
    const tests::ScratchDir dir;
    const auto checkpoint = Checkpoint::open(dir.file(
        "x.safetensors", raw_safetensors(header, zero_bytes(static_cast<size_t>(dtype.bits)))));
    EXPECT_EQ(checkpoint.info("t").dtype, word);
    if (usable.contains(word)) {
      EXPECT_EQ(checkpoint.tensor("t").element_size() * 8, dtype.bits) << word;
    } else {
      expect_parts(error_of([&] { checkpoint.tensor("t"); }), "tensor 't' has dtype " + word);
    }
  }
}

TEST(Safetensors, BoolMustBeZeroOrOne) {
  const tests::ScratchDir dir;
  const auto content = raw_safetensors(one_tensor("\"BOOL\"", "[2]", "[0,2]"), "\x01\x07");
  const auto checkpoint = Checkpoint::open(dir.file("x.safetensors", content));
  expect_parts(error_of([&] { checkpoint.tensor("t"); }), "tensor 't'", "byte 7");
}

}  // namespace
}  // namespace theseus::checkpoint
