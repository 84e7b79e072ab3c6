#include "theseus/checkpoint/checkpoint.h"

#include <filesystem>
#include <unistd.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;
using tests::error_of;
using tests::expect_parts;
using tests::ScratchDir;

void write_one(const fs::path& path, const std::string& name, float value) {
  write_safetensors(path, {{name, at::full({2}, value)}});
}

std::string open_error(const fs::path& path) {
  return error_of([&] { Checkpoint::open(path); });
}

TEST(Checkpoint, FormatByExtensionThenByContent) {
  const ScratchDir dir;
  write_one(dir / "blob", "a", 1);
  EXPECT_EQ(Checkpoint::open(dir / "blob").tensors().size(), 1U);
  write_one(dir / "x.bin", "a", 1);
  expect_parts(
      open_error(dir / "x.bin"), "x.bin is named like torch_zip but begins like safetensors",
      ".safetensors");
}

TEST(Checkpoint, WhatIsNoCheckpointIsShown) {
  const ScratchDir dir;
  expect_parts(
      open_error(dir.file("notes.txt", "Dear model,\nhello")), "notes.txt is not a checkpoint",
      "'Dear model,\\x0ahello'", "safetensors (.safetensors)", "torch_zip (.pt .pth .bin .ckpt)");
  expect_parts(open_error(dir.file("empty", "")), "not a checkpoint", "empty");
  expect_parts(open_error(dir / "absent"), "absent': No such file or directory");
}

TEST(Checkpoint, UnknownTensorNamesTheNearest) {
  const ScratchDir dir;
  write_safetensors(
      dir / "m.safetensors", {{"encoder.weight", at::ones({1})},
                              {"encoder.bias", at::ones({1})},
                              {"head.weight", at::ones({1})},
                              {"z", at::ones({1})}});
  const auto checkpoint = Checkpoint::open(dir / "m.safetensors");
  EXPECT_EQ(checkpoint.find("encoder.wieght"), nullptr);
  const auto message = error_of([&] { checkpoint.tensor("encoder.wieght"); });
  expect_parts(message, "no tensor 'encoder.wieght'", "nearest names are encoder.weight, ");
  EXPECT_EQ(checkpoint.bytes(), 16);
}

TEST(Directory, OrderOfNames) {
  const ScratchDir dir;
  expect_parts(open_error(dir.path()), "empty directory");
  dir.file("config.json", "{}");
  expect_parts(
      open_error(dir.path()), "holds no weights", "model.safetensors", "it has config.json");
  write_one(dir / "mine.safetensors", "a", 1);
  EXPECT_EQ(find_weights(dir.path()), dir / "mine.safetensors");
  write_one(dir / "other.safetensors", "a", 2);
  expect_parts(
      open_error(dir.path()), "several weights files", "mine.safetensors, other.safetensors");
  EXPECT_EQ(find_weights(dir.path(), {"none", "other.safetensors"}), dir / "other.safetensors");
  const char* const ascending[] = {
      "adapter_model.bin",
      "open_clip_pytorch_model.bin",
      "pytorch_model.bin.index.json",
      "pytorch_model.bin",
      "adapter_model.safetensors",
      "open_clip_model.safetensors",
      "model.safetensors.index.json",
      "model.safetensors"};
  for (const auto* name : ascending) {
    dir.file(name, "");
    EXPECT_EQ(find_weights(dir.path()), dir / name);
  }
}

TEST(Directory, UnreadableIsNamed) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "everything is readable to root";
  }
  const ScratchDir dir;
  dir.file("closed/model.safetensors", "");
  fs::permissions(dir / "closed", fs::perms::none);
  expect_parts(open_error(dir / "closed"), "cannot list", "closed");
  fs::permissions(dir / "closed", fs::perms::owner_all);
}

// Two shards and their index, as the writer makes them.
class Sharded : public testing::Test {
 protected:
  void SetUp() override {
    const auto files = write_checkpoint(
        dir_.path(), "model",
        {{"a", at::kFloat, {2}, ""}, {"b", at::kFloat, {2}, ""}, {"c", at::kFloat, {2}, ""}},
        [](const Entry& entry) { return at::full({2}, entry.name[0]).to(at::kFloat); }, 16);
    ASSERT_EQ(files.size(), 3U);
  }
  void set_index(const std::string& map) {
    dir_.file("model.safetensors.index.json", R"({"weight_map":{)" + map + "}}");
  }

  ScratchDir dir_;
};

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

std::string row(const std::string& name, const std::string& shard) {
  return "\"" + name + "\":\"" + shard + "\"";
}

TEST_F(Sharded, ReadsThroughTheIndex) {
  const auto checkpoint = Checkpoint::open(dir_.path());
  EXPECT_EQ(checkpoint.files(), (std::vector<fs::path>{dir_ / kFirst, dir_ / kSecond}));
  ASSERT_EQ(checkpoint.tensors().size(), 3U);
  EXPECT_EQ(checkpoint.info("c").file, 1U);
  EXPECT_EQ(checkpoint.tensor("c")[0].item<float>(), 'c');
  EXPECT_EQ(checkpoint.tensor("a")[1].item<float>(), 'a');
}

TEST_F(Sharded, SymlinkedAsInACache) {
  fs::create_directories(dir_ / "blobs");
  fs::create_directories(dir_ / "snapshots/main");
  int blob = 0;
  for (const std::string name : {kFirst, kSecond, "model.safetensors.index.json"}) {
    const auto target = "blobs/" + std::to_string(blob++);
    fs::rename(dir_ / name, dir_ / target);
    fs::create_symlink("../../" + target, dir_ / ("snapshots/main/" + name));
  }
  EXPECT_EQ(Checkpoint::open(dir_ / "snapshots/main").tensors().size(), 3U);
}

TEST_F(Sharded, LeavingTheDirectoryIsRefused) {
  for (const std::string name :
       {"../elsewhere.safetensors", "/etc/passwd", "sub/../../x", "..", "", "..\\\\x", "sub/"}) {
    set_index(row("a", name));
    expect_parts(open_error(dir_.path()), "index.json", "not a file inside");
  }
}

TEST_F(Sharded, DisagreementIsRefused) {
  set_index(row("a", kFirst) + "," + row("b", kFirst) + "," + row("c", "absent.safetensors"));
  expect_parts(open_error(dir_.path()), "'absent.safetensors', which is missing", "'c'");
  set_index(row("a", kFirst) + "," + row("b", kFirst) + "," + row("z", kFirst));
  expect_parts(open_error(dir_.path()), kFirst, "lacks the tensor 'z'");
  set_index(row("a", kFirst) + "," + row("c", kSecond));
  expect_parts(open_error(dir_.path()), kFirst, "holds the tensor 'b'", "does not mention");
  write_safetensors(dir_ / kSecond, {{"c", at::ones({1})}, {"b", at::ones({1})}});
  set_index(row("a", kFirst) + "," + row("b", kFirst) + "," + row("c", kSecond));
  expect_parts(open_error(dir_.path()), kSecond, "holds the tensor 'b'", "says is in", kFirst);
}

TEST_F(Sharded, MalformedIndexIsRefused) {
  set_index("");
  expect_parts(open_error(dir_.path()), "weight_map is empty");
  set_index(R"("a":3)");
  expect_parts(open_error(dir_.path()), "weight_map.a: expected a string");
  dir_.file("model.safetensors.index.json", "{}");
  expect_parts(open_error(dir_.path()), "weight_map is missing");
}

}  // namespace
}  // namespace theseus::checkpoint
