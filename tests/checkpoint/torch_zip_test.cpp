#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/checkpoint.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::checkpoint {
namespace {

using tests::error_of;
using tests::expect_parts;

std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(THESEUS_SOURCE_DIR) / "tests/fixtures/torch" / name;
}

void expect_weights(const Checkpoint& checkpoint, const std::string& file) {
  ASSERT_EQ(checkpoint.tensors().size(), 2U) << file;
  EXPECT_TRUE(at::equal(checkpoint.tensor("fc.weight"), at::arange(6.0F).reshape({2, 3}))) << file;
  EXPECT_TRUE(at::equal(checkpoint.tensor("fc.bias"), at::tensor({1.0F, 2.0F}))) << file;
}

TEST(TorchZip, ReadsStateDictsOfEveryProtocolAndForm) {
  for (const auto* name :
       {"plain.pt", "protocol3.pt", "protocol4.pt", "protocol5.pt", "parameters.pt"}) {
    const auto checkpoint = Checkpoint::open(fixture(name));
    expect_weights(checkpoint, name);
    EXPECT_TRUE(checkpoint.notes().empty()) << name;
  }
  const auto attributes = Checkpoint::open(fixture("attributes.pt"));
  EXPECT_TRUE(at::equal(attributes.tensor("parameter"), at::ones({2})));
  EXPECT_TRUE(at::equal(attributes.tensor("tensor"), at::ones({3})));
  for (const auto* name : {"hand_made.pt", "tensor_v3.pt"}) {
    EXPECT_TRUE(
        at::equal(Checkpoint::open(fixture(name)).tensor("w"), at::arange(6.0F).reshape({2, 3})));
  }
}

TEST(TorchZip, NestedStateDictIsChosenAndSaid) {
  for (const std::string key :
       {"state_dict", "model", "model_state_dict", "ema", "ema_state_dict", "module"}) {
    const auto checkpoint = Checkpoint::open(fixture("nested_" + key + ".pt"));
    expect_weights(checkpoint, key);
    ASSERT_EQ(checkpoint.notes().size(), 1U);
    expect_parts(checkpoint.notes()[0], "read from key '" + key + "'; other keys: epoch, lr");
  }
  const auto two = Checkpoint::open(fixture("nested_two.pt"));
  expect_weights(two, "nested_two.pt");
  expect_parts(two.notes().at(0), "read from key 'model'; other keys: ema, rng");
}

TEST(TorchZip, NonTensorsAreNoted) {
  const auto mixed = Checkpoint::open(fixture("mixed.pt"));
  expect_weights(mixed, "mixed.pt");
  expect_parts(
      mixed.notes().at(0), "mixed.pt: not read: steps (an integer)", "name (text)", "raw (bytes)",
      "none (bytes)", "size (a tuple)", "list (a list)", "flag (a bool)", "big (an integer)",
      "_extra_state (None)");
}

TEST(TorchZip, Dtypes) {
  const auto file = Checkpoint::open(fixture("dtypes.pt"));
  for (const auto* name : {"f32", "f64", "f16", "bf16"}) {
    EXPECT_TRUE(at::equal(file.tensor(name).to(at::kFloat), at::tensor({1.5F, -2.0F}))) << name;
  }
  for (const auto* name : {"i8", "i16", "i32", "i64"}) {
    EXPECT_TRUE(at::equal(file.tensor(name).to(at::kInt), at::tensor({1, -2}))) << name;
  }
  EXPECT_EQ(file.tensor("u8")[1].item<int>(), 254);
  EXPECT_TRUE(file.tensor("bool")[0].item<bool>());
  EXPECT_FALSE(file.tensor("bool")[1].item<bool>());
  EXPECT_EQ(file.tensor("scalar").item<int64_t>(), 7);
  EXPECT_EQ(file.tensor("empty").sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(file.info("bf16").dtype, "BF16");
  expect_parts(error_of([&] { file.tensor("c64"); }), "tensor 'c64' has dtype C64");
}

TEST(TorchZip, ViewsShareTheMappingAndTiedTensorsAreKnown) {
  const auto file = Checkpoint::open(fixture("views.pt"));
  const auto whole = at::arange(12.0F).reshape({3, 4});
  EXPECT_TRUE(at::equal(file.tensor("whole"), whole));
  EXPECT_TRUE(at::equal(file.tensor("transposed"), whole.t()));
  EXPECT_TRUE(at::equal(file.tensor("column"), whole.select(1, 1)));
  EXPECT_TRUE(at::equal(file.tensor("tail"), whole.slice(0, 1)));
  EXPECT_EQ(file.tensor("whole").data_ptr(), file.tensor("transposed").data_ptr());
  EXPECT_EQ(file.info("whole").storage, file.info("again").storage);
  EXPECT_NE(file.info("whole").storage, file.info("transposed").storage);
  EXPECT_NE(file.info("whole").storage, file.info("tail").storage);
}

struct BadFile {
  const char* name;
  std::vector<std::string> parts;
};

void PrintTo(const BadFile& bad, std::ostream* out) {
  *out << bad.name;
}

class BadTorchFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadTorchFile, IsRefusedWithItsReason) {
  const auto path = fixture(GetParam().name);
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto message = error_of([&] { Checkpoint::open(path); });
  expect_parts(message, path.string());
  for (const auto& part : GetParam().parts) {
    expect_parts(message, part);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files,
    BadTorchFile,
    testing::Values(
        BadFile{"evil_system.pt", {"posix.system", "plain state dict", "nothing in a file is run"}},
        BadFile{"evil_eval.pt", {"'builtins.eval'"}},
        BadFile{"namespace.pt", {"'argparse.Namespace'", "torch.save(model.state_dict(), path)"}},
        BadFile{"big_endian.pt", {"byte order 'big'", "little-endian"}},
        BadFile{"untyped.pt", {"untyped storage '0'", "no dtype"}},
        BadFile{"offset_past.pt", {"tensor 'w'", "offset 1", "leave its storage of 6 elements"}},
        BadFile{"stride_past.pt", {"tensor 'w'", "stride [4, 1]", "leave its storage"}},
        BadFile{"stride_negative.pt", {"tensor 'w'", "[-3, 1]", "must not be negative"}},
        BadFile{"stride_overflow.pt", {"tensor 'w'", "its storage holds 6"}},
        BadFile{"expanded.pt", {"tensor 'w' has 300000 elements", "its storage holds 6"}},
        BadFile{"size_negative.pt", {"tensor 'w'", "[-2, 3]", "negative"}},
        BadFile{"size_rank.pt", {"1 extents but 2 strides"}},
        BadFile{"storage_short.pt", {"tensor 'w'", "storage of 24 bytes", "holds 20"}},
        BadFile{"storage_missing.pt", {"tensor 'w'", "lacks its bytes, 'data/7'"}},
        BadFile{"twice.pt", {"'w' appears twice"}},
        BadFile{"compressed.pt", {"zip entry 'archive/data.pkl' is compressed", "torch.save"}},
        BadFile{"bomb.pt", {"is compressed"}},
        BadFile{"no_tensors.pt", {"holds no state dict", "state_dict", "epoch (an integer)"}},
        BadFile{"list.pt", {"holds a list, not a state dict"}},
        BadFile{"truncated_pickle.pt", {"data.pkl: damaged pickle at byte"}},
        BadFile{"long.pt", {"holds a float, not a state dict"}},
        BadFile{"protocol0.pt", {"protocol of 2 or higher"}},
        BadFile{"opcode.pt", {"opcode 143"}},
        BadFile{"other.zip", {"not one that torch.save writes", "1 entries", "data.pkl"}},
        BadFile{"legacy.pt", {"torch before 1.6", "save it again"}},
        BadFile{"torchscript.pt", {"TorchScript archive", "state_dict()"}}),
    [](const auto& info) {
      const std::string name = info.param.name;
      return name.substr(0, name.find('.'));
    });

TEST(TorchZip, NothingOfAnEvilPickleWasRun) {
  EXPECT_FALSE(std::filesystem::exists("/tmp/theseus_evil"));
}

TEST(TorchZip, BadBoolIsRefusedOnUse) {
  const auto file = Checkpoint::open(fixture("bad_bool.pt"));
  expect_parts(error_of([&] { file.tensor("w"); }), "tensor 'w'", "byte 2");
}

TEST(TorchZip, OldTarAndForeignBytesAreNamed) {
  const tests::ScratchDir dir;
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  expect_parts(
      error_of([&] { Checkpoint::open(dir.file("x.pth", tar)); }),
      "tar format of torch before 1.6");
  expect_parts(
      error_of([&] { Checkpoint::open(dir.file("y.pth", "hello there")); }),
      "not a file that torch.save writes", "'hello there'");
}

TEST(TorchZip, EveryTruncationIsRefused) {
  const tests::ScratchDir dir;
  const auto whole = tests::read_bytes(fixture("plain.pt"));
  for (size_t size = 4; size < whole.size(); size += 7) {
    const auto path = dir.file("cut.pt", std::string_view(whole).substr(0, size));
    expect_parts(error_of([&] { Checkpoint::open(path); }), "cut.pt");
  }
}

}  // namespace
}  // namespace theseus::checkpoint
