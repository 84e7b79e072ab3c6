#include "theseus/output/space.h"

#include <gtest/gtest.h>

#include "theseus/output/side_files.h"
#include "theseus/output/write_model.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::ScratchDir;

TEST(Space, SaysWhatIsNeededAndWhatThereIs) {
  const ScratchDir dir;
  require_space(dir.path(), 1, "a file");
  require_space(dir / "not/yet/there", 1, "a file");
  require_space("relative", 1, "a file");
  const auto message =
      tests::error_of([&] { require_space(dir.path(), int64_t{4} << 60, "the merged model"); });
  tests::expect_parts(message, "the merged model needs 4.6 EB", dir.path().string(), "B left");
}

TEST(Space, AnOutputTakesWhatWasSaid) {
  for (const char* name : {"llama_bfloat16", "bert_old_bin", "mistral"}) {
    const auto target = tests::open_case(name);
    const ScratchDir dir;
    write_model(target, dir.path(), [](const std::string&) { return at::Tensor(); });
    copy_side_files(target, dir.path());
    int64_t taken = 0;
    for (const auto& file : fs::directory_iterator(dir.path())) {
      taken += static_cast<int64_t>(file.file_size());
    }
    const auto said = bytes_of_output(target);
    EXPECT_LE(taken, said) << name;
    EXPECT_GE(taken, said * 3 / 4) << name;  // tiny models are half headers
  }
}

}  // namespace
}  // namespace theseus::output
