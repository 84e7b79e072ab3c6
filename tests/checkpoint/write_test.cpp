#include "theseus/checkpoint/write.h"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/checkpoint.h"

#include "tests/support/expect_error.h"
#include "tests/support/raw_safetensors.h"
#include "tests/support/scratch_dir.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;
using tests::error_of;
using tests::expect_parts;
using tests::read_bytes;
using tests::ScratchDir;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> result;
  for (const auto& file : fs::directory_iterator(directory)) {
    result.push_back(file.path().filename().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

const std::vector<Entry> kThree = {
    {"a", at::kFloat, {2}, ""}, {"b", at::kFloat, {2}, ""}, {"c", at::kFloat, {2}, ""}};

at::Tensor zeros(const Entry& entry) {
  return at::zeros(entry.shape, entry.dtype);
}

TEST(Write, BytesOfTheReferenceWriter) {
  const ScratchDir dir;
  write_safetensors(
      dir / "x.safetensors", {{"b", at::zeros({2}, at::kHalf)},
                              {"a", at::zeros({1}, at::kHalf)},
                              {"q\"\n", at::ones({}, at::kByte)},
                              {"z", at::zeros({1, 2}, at::kLong)}});
  const auto header = std::string(R"({"__metadata__":{"format":"pt"},)"
                                  R"("z":{"dtype":"I64","shape":[1,2],"data_offsets":[0,16]},)"
                                  R"("a":{"dtype":"F16","shape":[1],"data_offsets":[16,18]},)"
                                  R"("b":{"dtype":"F16","shape":[2],"data_offsets":[18,22]},)"
                                  R"("q\"\n":{"dtype":"U8","shape":[],"data_offsets":[22,23]}})");
  const auto padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(
      read_bytes(dir / "x.safetensors"),
      tests::raw_safetensors(padded, std::string(22, '\0') + "\x01"));
}

TEST(Write, RewritingAFileOfTheReferenceWriterChangesNoByte) {
  const auto golden = fs::path(THESEUS_SOURCE_DIR "/../shared") / "golden";
  if (!fs::exists(golden)) {
    GTEST_SKIP() << "no golden files at " << golden;
  }
  const ScratchDir dir;
  for (const auto* name : {"hf_clip_a", "hf_bert", "t5_v10", "qwen3", "lora_adapter"}) {
    const auto path = find_weights(golden / name);
    const auto checkpoint = Checkpoint::open(path);
    std::vector<std::pair<std::string, at::Tensor>> tensors;
    for (const TensorInfo& info : checkpoint.tensors()) {
      tensors.emplace_back(info.name, checkpoint.tensor(info.name));
    }
    write_safetensors(dir / "again.safetensors", tensors);
    EXPECT_TRUE(read_bytes(dir / "again.safetensors") == read_bytes(path)) << path;
  }
}

TEST(Write, StridedGradientAndNegatedTensors) {
  const ScratchDir dir;
  const auto whole = at::arange(6.0F).reshape({2, 3});
  const auto complex = at::complex(whole, whole);
  write_safetensors(
      dir / "x.safetensors", {{"t", whole.t()},
                              {"column", whole.select(1, 1)},
                              {"gradient", whole.clone().set_requires_grad(true)},
                              {"negated", at::imag(complex.conj())},
                              {"expanded", at::ones({1}).expand({3})}});
  const auto file = Checkpoint::open(dir / "x.safetensors");
  EXPECT_TRUE(at::equal(file.tensor("t"), whole.t()));
  EXPECT_TRUE(at::equal(file.tensor("column"), whole.select(1, 1)));
  EXPECT_TRUE(at::equal(file.tensor("gradient"), whole));
  EXPECT_TRUE(at::equal(file.tensor("negated"), -whole));
  EXPECT_TRUE(at::equal(file.tensor("expanded"), at::ones({3})));
}

TEST(Write, TensorsOnADevice) {
  if (!at::hasCUDA()) {
    GTEST_SKIP() << "no CUDA device";
  }
  const ScratchDir dir;
  const auto values = at::arange(6.0F).reshape({2, 3});
  write_safetensors(dir / "x.safetensors", {{"t", values.to(at::kCUDA).t()}});
  EXPECT_TRUE(at::equal(Checkpoint::open(dir / "x.safetensors").tensor("t"), values.t()));
}

TEST(Write, WrongTensorsAreInternalErrorsAndLeaveNothing) {
  const ScratchDir dir;
  const auto fails = [&](const std::vector<Entry>& entries, const Source& source) {
    return error_of<InternalError>(
        [&] { write_safetensors(dir / "x.safetensors", entries, source); });
  };
  const std::vector<Entry> one = {{"a", at::kFloat, {2}, ""}};
  expect_parts(fails(one, [](const Entry&) { return at::zeros({3}); }), "'a'", "[3]", "[2]");
  expect_parts(
      fails(one, [](const Entry&) { return at::zeros({2}, at::kHalf); }), "'a'", "Half", "Float");
  expect_parts(fails(one, [](const Entry&) { return at::Tensor(); }), "'a'", "undefined");
  expect_parts(fails({one[0], one[0]}, zeros), "'a'", "twice");
  expect_parts(fails({{"a", at::kFloat, {2}, "b"}}, zeros), "'a'", "tied to 'b'");
  EXPECT_TRUE(fs::is_empty(dir.path()));
  expect_parts(
      error_of([&] {
        write_safetensors(dir / "x.safetensors", {{"a", at::zeros({1}, at::kComplexDouble)}});
      }),
      "'a'", "ComplexDouble");
}

TEST(Write, TiedEntriesAreStoredOnce) {
  const ScratchDir dir;
  write_safetensors(
      dir / "x.safetensors", {{"head", at::kFloat, {2}, "embed"}, {"embed", at::kFloat, {2}, ""}},
      zeros);
  const auto file = Checkpoint::open(dir / "x.safetensors");
  ASSERT_EQ(file.tensors().size(), 1U);
  EXPECT_EQ(file.tensors()[0].name, "embed");
}

TEST(Write, ShardsAndIndex) {
  const ScratchDir dir;
  const auto files = write_checkpoint(dir.path(), "model", kThree, zeros, 16);
  EXPECT_EQ(
      files, (std::vector<std::string>{
                 "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                 "model.safetensors.index.json"}));
  EXPECT_EQ(read_bytes(dir / "model.safetensors.index.json"), R"({
  "metadata": {
    "total_size": 24
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b": "model-00001-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors"
  }
}
)");
}

TEST(Write, AnOlderCheckpointIsReplacedWhole) {
  const ScratchDir dir;
  const std::vector<int64_t> limits = {100, 16, 8, 8, 16, 100};
  dir.file("model-notes.txt", "not ours");
  for (const int64_t limit : limits) {
    auto files = write_checkpoint(dir.path(), "model", kThree, zeros, limit);
    files.push_back("model-notes.txt");
    std::sort(files.begin(), files.end());
    EXPECT_EQ(names_in(dir.path()), files);
    EXPECT_EQ(Checkpoint::open(dir.path()).tensors().size(), 3U);
  }
}

TEST(Write, AFailureInALaterShardLeavesTheOlderCheckpoint) {
  const ScratchDir dir;
  write_checkpoint(dir.path(), "model", kThree, zeros, 16);
  const auto before = names_in(dir.path());
  EXPECT_THROW(
      write_checkpoint(
          dir.path(), "model", kThree,
          [](const Entry& entry) {
            require<NumericError>(entry.name != "c", "no number");
            return at::ones({2});
          },
          16),
      NumericError);
  EXPECT_EQ(names_in(dir.path()), before);
  EXPECT_EQ(Checkpoint::open(dir.path()).tensor("a")[0].item<float>(), 0.0F);
}

TEST(Write, ADirectoryThatIsMissingIsNamed) {
  const ScratchDir dir;
  expect_parts(
      error_of([&] { write_checkpoint(dir / "absent", "model", kThree, zeros); }), "absent",
      "not a directory");
  expect_parts(
      error_of([&] { write_safetensors(dir / "absent/x.safetensors", kThree, zeros); }),
      "cannot write", "absent/x.safetensors");
}

// Files of this process may not grow past `bytes` while this lives: the disk is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

TEST(Write, AFullDiskLeavesNothing) {
  const ScratchDir dir;
  const std::vector<Entry> large = {{"a", at::kFloat, {64}, ""}, {"b", at::kFloat, {1 << 20}, ""}};
  std::string message;
  {
    const FullDisk full(1 << 20);
    message = error_of([&] { write_checkpoint(dir.path(), "model", large, zeros, 1 << 10); });
  }
  expect_parts(message, "cannot write", "model-00002-of-00002.safetensors");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Write, AGivenLayoutDecidesTheFiles) {
  const ScratchDir dir;
  const Layout layout = {
      .file_of = {{"a", "two.safetensors"}, {"b", "one.safetensors"}, {"c", "two.safetensors"}},
      .index = "my.index.json",
      .metadata = R"({"kept": [1], "total_parameters": 0, "total_size": 0})"};
  EXPECT_EQ(
      write_checkpoint(dir.path(), layout, kThree, zeros),
      (std::vector<std::string>{"one.safetensors", "two.safetensors", "my.index.json"}));
  EXPECT_EQ(read_bytes(dir / "my.index.json"), R"({
  "metadata": {
    "kept": [
      1
    ],
    "total_parameters": 6,
    "total_size": 24
  },
  "weight_map": {
    "a": "two.safetensors",
    "b": "one.safetensors",
    "c": "two.safetensors"
  }
}
)");
  EXPECT_EQ(Checkpoint::open(dir / "my.index.json").tensors().size(), 3U);
}

TEST(Write, AGivenLayoutOverwritesNothingAndFailsWhole) {
  const ScratchDir dir;
  const Layout layout = {
      .file_of = {{"a", "x.safetensors"}, {"b", "y.safetensors"}, {"c", "y.safetensors"}},
      .index = "x.index.json"};
  EXPECT_THROW(
      write_checkpoint(
          dir.path(), layout, kThree,
          [](const Entry& entry) {
            require<NumericError>(entry.name != "c", "no number");
            return at::ones({2});
          }),
      NumericError);
  EXPECT_TRUE(fs::is_empty(dir.path()));
  dir.file("y.safetensors", "older");
  expect_parts(
      error_of([&] { write_checkpoint(dir.path(), layout, kThree, zeros); }), "y.safetensors",
      "already there");
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"y.safetensors"});
}

TEST(Write, ForgottenPagesAreReadAgain) {
  const ScratchDir dir;
  const auto values = at::arange(1 << 16);
  write_safetensors(dir / "x.safetensors", {{"t", values}, {"u", values + 1}});
  const auto file = Checkpoint::open(dir / "x.safetensors");
  const auto view = file.tensor("t");
  EXPECT_TRUE(at::equal(view, values));
  file.forget("t");
  EXPECT_TRUE(at::equal(view, values));
  EXPECT_TRUE(at::equal(file.tensor("u"), values + 1));
}

}  // namespace
}  // namespace theseus::checkpoint
