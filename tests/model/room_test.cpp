#include "theseus/model/room.h"

#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"

#include "tests/support/cases.h"
#include "tests/support/scratch_dir.h"

namespace theseus::model {
namespace {

namespace fs = std::filesystem;

// A base in half precision takes as much as one in float32: weights are brought to the dtype of the computation.
TEST(Room, IsOfTheDtypeThatIsComputedInAndNotOfTheFile) {
  const auto whole = tests::case_path("llama3_rope");
  const auto model = Model::open(whole);
  tests::ScratchDir half;
  fs::copy_file(model.location().config, half / "config.json");
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  int64_t weights = 0;
  for (const auto& info : model.checkpoint().tensors()) {
    tensors.emplace_back(info.name, model.checkpoint().tensor(info.name).to(at::kHalf));
    weights += info.elements();
  }
  checkpoint::write_safetensors(half / "model.safetensors", tensors);
  for (const auto& path : {whole, half.path()}) {
    EXPECT_EQ(room_for(path, at::kFloat), 4 * weights);
    EXPECT_EQ(room_for(path, at::kBFloat16), 2 * weights);
    EXPECT_EQ(room_for(path, 20), 20 * weights);
  }
}

TEST(Room, IsNothingWhereNoModelIs) {
  tests::ScratchDir empty;
  EXPECT_EQ(room_for(empty.path(), at::kFloat), 0);
  EXPECT_EQ(room_for(empty / "none", at::kFloat), 0);
}

}  // namespace
}  // namespace theseus::model
