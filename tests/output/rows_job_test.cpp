// Few rows for wide spaces: kept as rows, with maps as factors, they carry what their moments carry.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/output/job.h"
#include "theseus/transport/alignment.h"

#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::Changes;
using tests::Planting;
using transport::Statistics;

// Two models that know nothing of each other, and three rows of each: one a text's token or an image.
class Few {
 public:
  explicit Few(const std::string& name)
      : planted_(
            tests::plant(name, Planting::kWidened, scratch_.path(), {.changes = Changes::kAll})),
        other_(tests::plant(
            name, Planting::kWidened, scratch_ / "other", {.changes = Changes::kAll, .seed = 9})) {
    const auto model = model::Model::open(planted_.source);
    auto batch = tests::planted_calibration(model, 3, 5);
    const bool text = batch.contains("input_ids");
    for (auto& [input, tensor] : batch) {
      tensor = text ? tensor.narrow(0, 0, 1).narrow(1, 0, 3).contiguous() : tensor;
    }
    options_ = tests::planted_job(planted_, scratch_.path());
    options_.calibration = scratch_ / "few.safetensors";
    options_.align.tokens = text ? "" : "mean";
    tests::write_inputs(options_.calibration, batch);
  }

  JobOptions job(Statistics statistics, const std::string& out) const {
    auto job = options_;
    job.align.statistics = statistics;
    job.out = scratch_ / out;
    return job;
  }
  JobOptions wider(Statistics statistics) const {
    auto result = job(statistics, "wider");
    result.target = other_.target;
    return result;
  }
  JobOptions narrower(Statistics statistics) const {
    auto result = job(statistics, "narrower");
    result.source = other_.target;
    result.tuned = other_.expected;
    result.target = planted_.source;
    return result;
  }
  const tests::Planted& planted() const { return planted_; }
  fs::path path(const std::string& name) const { return scratch_ / name; }

 private:
  tests::ScratchDir scratch_;
  tests::Planted planted_, other_;
  JobOptions options_;
};

int64_t factored(const nlohmann::ordered_json& record) {
  int64_t count = 0;
  for (const auto& row : record.at("spaces")) {
    count += row.contains("factors") ? 1 : 0;
  }
  return count;
}

// Each space with its rank, what is filled in, and trustworthy certificates, as from moments.
void expect_same_spaces(
    const nlohmann::ordered_json& found, const nlohmann::ordered_json& expected) {
  ASSERT_EQ(found.at("spaces").size(), expected.at("spaces").size());
  for (size_t i = 0; i < found.at("spaces").size(); ++i) {
    const auto& here = found.at("spaces")[i];
    const auto& there = expected.at("spaces")[i];
    for (const char* key :
         {"stage", "space", "source_width", "target_width", "rank", "completed"}) {
      EXPECT_EQ(here.at(key), there.at(key)) << here;
    }
    EXPECT_LT(here.at("orthogonality").get<double>(), 1e-6) << here;
    EXPECT_LT(here.at("asymmetry").get<double>(), 1e-7) << here;
  }
}

TEST(RowsJob, CarriesWhatMomentsCarry) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"llama", "vit", "bert", "t5", "openclip"}) {
    SCOPED_TRACE(name);
    const Few few(name);
    for (const auto& make : {&Few::wider, &Few::narrower}) {
      auto dense = (few.*make)(Statistics::kMoments);
      auto thin = (few.*make)(Statistics::kRows);
      thin.out += "-rows";
      const auto expected = tests::run(dense);
      const auto found = tests::run(thin);
      EXPECT_EQ(factored(expected), 0);
      EXPECT_GE(factored(found), 8);
      EXPECT_GT(found.at("schedule").at("statistics").at("rows"), 0);
      expect_same_spaces(found, expected);
      const auto updates = tests::update_of(dense.out);
      const auto others = tests::update_of(thin.out);
      ASSERT_EQ(updates.size(), others.size());
      for (const auto& [tensor, value] : updates) {
        // Rows are float32; what they hardly determine takes three of its seven digits.
        EXPECT_LT(tests::frobenius_error(others.at(tensor), value), 1e-4) << tensor;
      }
    }
  }
}

TEST(RowsJob, KeepsNormsWhenWidening) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"llama", "vit"}) {
    const Few few(name);
    auto job = few.wider(Statistics::kRows);
    job.norms = transport::Norms::kRotate;
    int64_t rows = 0;
    const auto record = tests::run(job);
    for (const auto& row : record.at("parameters")) {
      if (row.contains("source_norm")) {
        const double before = row.at("source_norm"), after = row.at("target_norm");
        EXPECT_NEAR(after / before, 1, 1e-6) << row;
        ++rows;
      }
    }
    EXPECT_GT(rows, 10);
  }
}

TEST(RowsJob, LeavesTheUpdateAsItIsOnTheSameModel) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"llama", "vit"}) {
    SCOPED_TRACE(name);
    const Few few(name);
    auto job = few.job(Statistics::kRows, "same");
    job.target = few.planted().source;
    EXPECT_GE(factored(tests::run(job)), 8);
    const auto expected = tests::difference(few.planted().tuned, few.planted().source);
    const auto found = tests::update_of(job.out);
    for (const auto& [tensor, value] : expected) {
      EXPECT_LT(tests::frobenius_error(found.at(tensor), value), 1e-6) << tensor;
    }
  }
}

TEST(RowsJob, GoesThroughAnAlignment) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"llama", "vit"}) {
    SCOPED_TRACE(name);
    const Few few(name);
    const auto direct = few.wider(Statistics::kRows);
    tests::run(direct);
    auto align = direct;
    align.tuned.clear();
    align.out = few.path("alignment");
    const auto about = align_job(align, tests::kQuiet);
    EXPECT_GE(factored(about), 8);
    auto carried = direct;
    carried.source.clear();
    carried.calibration.clear();
    carried.alignment = align.out;
    carried.out = few.path("carried");
    tests::run(carried);
    const auto expected = tests::update_of(direct.out);
    const auto found = tests::update_of(carried.out);
    for (const auto& [tensor, value] : expected) {
      EXPECT_TRUE(at::equal(found.at(tensor), value)) << tensor;
    }
    const auto alignment = transport::Alignment::open(align.out);
    EXPECT_EQ(alignment.about().at("format"), 2);
    const auto& space = about.at("spaces")[0].at("space").get<std::string>();
    EXPECT_EQ(alignment.find_map(space).size(0), about.at("spaces")[0].at("source_width"));
    // No one's activations are in it.
    for (const auto& entry : fs::directory_iterator(align.out)) {
      if (entry.path().extension() == ".safetensors") {
        for (const auto& [tensor, value] : tests::read_tensors(entry.path())) {
          EXPECT_FALSE(tensor.ends_with("_rows")) << tensor;
        }
      }
    }
  }
}

TEST(RowsJob, TellsADamagedAlignment) {
  const c10::NoGradGuard no_gradients;
  const Few few("vit");
  auto align = few.wider(Statistics::kRows);
  align.tuned.clear();
  align.out = few.path("alignment");
  const auto about = align_job(align, tests::kQuiet);
  const auto alignment = transport::Alignment::open(align.out);
  const auto& row = about.at("spaces")[0];
  const auto space = row.at("space").get<std::string>();
  EXPECT_NO_THROW(alignment.require_maps({space}));
  tests::write_inputs(
      align.out / c10::str("maps-", row.at("stage").get<int64_t>(), ".safetensors"),
      {{space + "/left", at::zeros({3, 2})}});
  tests::expect_parts(
      tests::error_of([&] { alignment.require_maps({space}); }), "damaged", space + "/left");
}

}  // namespace
}  // namespace theseus::output
