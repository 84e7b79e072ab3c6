#include "theseus/output/side_files.h"

#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::read_bytes;
using tests::ScratchDir;
using Names = std::vector<std::string>;

// A model whose directory holds what is found beside models.
void furnish(const ScratchDir& dir, const ScratchDir& elsewhere) {
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
    fs::copy_file(tests::case_path("mistral") / name, dir / name);
  }
  for (const char* name :
       {"LICENSE", "tokenizer.model", "special_tokens_map.json", "vocab.txt", "empty.txt",
        ".gitattributes", "README.md", "pytorch_model.bin", "tf_model.h5", "flax_model.msgpack",
        "onnx/model.onnx", "optimizer.pt", "training_args.bin", "model.safetensors.index.json",
        "adapter_config.json", "update.safetensors", "Model.GGUF"}) {
    dir.file(name, std::string(name) == "empty.txt" ? "" : name);
  }
  fs::create_symlink(elsewhere.file("blob", "from a cache"), dir / "tokenizer.json");
  fs::create_symlink(elsewhere / "gone", dir / "merges.txt");
  dir.file("big.json", "");
  fs::resize_file(dir / "big.json", kLargestSideFile + 1);
}

TEST(SideFiles, CopiesWhatIsNotWeights) {
  const ScratchDir from;
  const ScratchDir elsewhere;
  furnish(from, elsewhere);
  const auto target = model::Model::open(from.path());
  const ScratchDir to;
  to.file("vocab.txt", "ours");
  const auto result = copy_side_files(target, to.path(), {"special_tokens_map.json"});
  EXPECT_EQ(
      result.copied, (Names{
                         "LICENSE", "config.json", "empty.txt", "generation_config.json",
                         "tokenizer.json", "tokenizer.model"}));
  EXPECT_EQ(
      result.left_out,
      (Names{"big.json: 67.1 MB are too large", "merges.txt: the link leads nowhere"}));
  EXPECT_EQ(read_bytes(to / "vocab.txt"), "ours");
  EXPECT_EQ(read_bytes(to / "tokenizer.json"), "from a cache");
  EXPECT_FALSE(fs::is_symlink(to / "tokenizer.json"));
  EXPECT_EQ(read_bytes(to / "config.json"), read_bytes(from / "config.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(to.path()), {}), 7);
}

TEST(SideFiles, CopiesWhatModulesOfSentenceTransformersName) {
  const ScratchDir from;
  const ScratchDir elsewhere;
  furnish(from, elsewhere);
  from.file("modules.json", R"([{"name": "0", "path": ""}, {"name": "1", "path": "1_Pooling"},
      {"name": "2", "path": "2_Dense"}, {"name": "3", "path": "../outside"},
      {"name": "4", "path": "3_Normalize"}, {"name": "5", "path": ".hidden"}, 6])");
  from.file("1_Pooling/config.json", "pooling");
  from.file("2_Dense/model.safetensors", "weights");
  from.file(".hidden/config.json", "not named");
  const auto target = model::Model::open(from.path());
  const ScratchDir to;
  to.file("1_Pooling/config.json", "ours");
  const auto result = copy_side_files(target, to.path());
  EXPECT_EQ(std::count(result.copied.begin(), result.copied.end(), "2_Dense/model.safetensors"), 1);
  EXPECT_EQ(read_bytes(to / "1_Pooling/config.json"), "ours");
  EXPECT_EQ(read_bytes(to / "2_Dense/model.safetensors"), "weights");
  EXPECT_FALSE(fs::exists(to / ".hidden"));
  EXPECT_FALSE(fs::exists(to / "onnx"));
  from.file("modules.json", "no list");
  const ScratchDir without;
  copy_side_files(target, without.path());
  EXPECT_TRUE(fs::exists(without / "modules.json"));
  EXPECT_FALSE(fs::exists(without / "2_Dense"));
}

TEST(SideFiles, AWeightsFileBesideItsConfigIsAModelsDirectory) {
  const ScratchDir from;
  const ScratchDir elsewhere;
  furnish(from, elsewhere);
  const ScratchDir to;
  const auto result = copy_side_files(model::Model::open(from / "model.safetensors"), to.path());
  EXPECT_TRUE(fs::exists(to / "tokenizer.model"));
  EXPECT_EQ(result.copied.size(), 8U);
}

TEST(SideFiles, AConfigFromElsewhereComesAloneAndUnderTheNameThatIsLookedFor) {
  const ScratchDir from;
  from.file("notes.txt", "not the model's");
  fs::copy_file(tests::case_path("mistral") / "model.safetensors", from / "model.safetensors");
  const ScratchDir elsewhere;
  fs::copy_file(tests::case_path("mistral") / "config.json", elsewhere / "small.json");
  const auto target =
      model::Model::open(from / "model.safetensors", {.config = elsewhere / "small.json"});
  const ScratchDir to;
  EXPECT_EQ(copy_side_files(target, to.path()).copied, (Names{"config.json", "small.json"}));
}

TEST(SideFiles, TheConfigThatWasUsedReplacesTheOneBesideTheWeights) {
  const ScratchDir from;
  fs::copy_file(tests::case_path("mistral") / "model.safetensors", from / "model.safetensors");
  from.file("config.json", "{\"model_type\": \"another\"}");
  const auto config = tests::case_path("mistral") / "config.json";
  const auto target = model::Model::open(from.path(), {.config = config});
  const ScratchDir to;
  EXPECT_EQ(copy_side_files(target, to.path()).copied, Names{"config.json"});
  EXPECT_EQ(read_bytes(to / "config.json"), read_bytes(config));
}

}  // namespace
}  // namespace theseus::output
