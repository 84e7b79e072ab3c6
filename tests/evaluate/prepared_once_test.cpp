#include "theseus/evaluate/prepared_once.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPreprocessing =
    R"({"do_resize": true, "size": {"height": 24, "width": 24}, "resample": 2, "do_rescale": true,
        "rescale_factor": 0.00392156862745098, "do_normalize": true,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})";

// The second job, and one after a restart, do without the data.
TEST(PreparedOnce, ReadsTheExamplesOnce) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", tests::Planting::kPermuted, scratch.path());
  for (const auto& model : {planted.source, planted.target}) {
    tests::write_bytes(model / "preprocessor_config.json", kPreprocessing);
  }
  const auto fixtures = fs::path(THESEUS_SOURCE_DIR) / "tests/fixtures/evaluate";
  const auto data = scratch / "data";
  fs::create_directory(data);
  fs::copy(fixtures / "images.csv", data / "images.csv");
  fs::copy(fixtures / "images", data / "images");
  const auto given = [&](const PreparedOnce& prepared) {
    output::JobOptions job;
    job.source = planted.source;
    job.target = planted.target;
    job.split = "";
    job.align.sampling = {.batch_size = 4, .batches = 9, .seed = 7};
    const auto drawn = prepared.give(job);
    EXPECT_EQ(job.align.sampling.batches, 0);  // drawn already: all of the file
    const auto calibration = stats::Calibration::open(
        job.calibration, model::Model::open(job.source).architecture(),
        model::Model::open(job.target).architecture(), job.align.sampling);
    EXPECT_EQ(calibration.sequences(), 12);  // 3 batches of 4, as the table says, not 9
    return drawn;
  };
  const auto file = scratch / "calibration.safetensors";
  {
    const PreparedOnce prepared((data / "images.csv").string(), 3, file);
    const auto drawn = given(prepared);
    fs::remove_all(data);
    EXPECT_EQ(given(prepared), drawn);
    EXPECT_TRUE(fs::exists(file));
  }
  {
    PreparedOnce again((data / "images.csv").string(), 3, file);
    given(again);
    again.done();
  }
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(file.string() + ".json"));
}

}  // namespace
}  // namespace theseus::evaluate
