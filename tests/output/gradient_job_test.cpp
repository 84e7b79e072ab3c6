// Jobs that learn from labels. Masks are compared with those of the public reference
// (tools/goldens/gradfix.py).

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"
#include "theseus/model/model.h"
#include "theseus/output/job.h"
#include "theseus/output/method_words.h"
#include "theseus/output/opened.h"
#include "theseus/output/plan_of.h"
#include "theseus/output/supervision.h"

#include "tests/support/cases.h"
#include "tests/support/deepen.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using gradient::Mask;
using gradient::Vote;
using Tensors = std::map<std::string, at::Tensor>;

const fs::path kFixture = fs::path(THESEUS_SOURCE_DIR) / "tests/fixtures/gradient";

class GradientJob : public testing::Test {
 protected:
  // From `source` to `target`, with the fixture's images for each and random changes.
  JobOptions job(const std::string& source, const std::string& target, bool update_of_fixture) {
    fs::create_directories(scratch_ / "tuned");
    fs::copy_file(
        kFixture / source / "open_clip_config.json", scratch_ / "tuned/open_clip_config.json",
        fs::copy_options::overwrite_existing);
    std::vector<std::pair<std::string, at::Tensor>> tuned;
    at::manual_seed(4);
    for (const auto& [name, value] :
         tests::read_tensors(kFixture / source / "open_clip_model.safetensors")) {
      const auto delta = golden_.find("delta/" + name);
      const bool visual = name.starts_with("visual.");
      tuned.emplace_back(
          name, update_of_fixture && delta != golden_.end() ? value + delta->second
                : visual && !update_of_fixture              ? value + 0.01 * at::randn_like(value)
                                                            : value);
    }
    checkpoint::write_safetensors(scratch_ / "tuned/open_clip_model.safetensors", tuned);
    model::Batch inputs = {{"labels", golden_.at("labels")}};
    for (const auto* name : {"pixel_values", "classes"}) {
      inputs[c10::str("source/", name)] = golden_.at(c10::str(source, "/", name));
      inputs[c10::str("target/", name)] = golden_.at(c10::str(target, "/", name));
    }
    tests::write_inputs(scratch_ / "inputs.safetensors", inputs);
    JobOptions options;
    options.source = kFixture / source;
    options.tuned = scratch_ / "tuned";
    options.target = kFixture / target;
    options.calibration = scratch_ / "inputs.safetensors";
    options.out = scratch_ / "out";
    options.write = "update";
    options.align.sampling.batch_size = 4;
    options.labels = true;
    return options;
  }

  Tensors update(const JobOptions& options) {
    fs::remove_all(options.out);
    record_ = tests::run(options);
    return tests::update_of(options.out);
  }

  // Parameters that were carried, of a record.
  std::map<std::string, nlohmann::ordered_json> carried() const {
    std::map<std::string, nlohmann::ordered_json> rows;
    for (const auto& row : record_.at("parameters")) {
      if (row.at("action") == "carried") {
        rows[row.at("parameter")] = row;
      }
    }
    return rows;
  }

  const c10::NoGradGuard no_gradients_;
  tests::ScratchDir scratch_;
  Tensors golden_ = tests::read_tensors(kFixture / "golden.safetensors");
  nlohmann::ordered_json record_;
};

TEST_F(GradientJob, MaskIsTheReferences) {
  auto options = job("target", "target", true);
  options.align.method = "gradient-mask";
  for (const auto& [vote, mask, words] :
       {std::tuple(Vote::kMean, Mask::kNone, "masked/mean/normal/"),
        std::tuple(Vote::kMajority, Mask::kForce, "masked/majority/force/")}) {
    options.vote = vote;
    options.mask = mask;
    const auto found = update(options);
    int64_t carried = 0, differ = 0;
    for (const auto& [name, delta] : found) {
      if (delta.abs().max().item<double>() == 0 || name.ends_with("in_proj_bias")) {
        continue;  // embeddings stay; the sign of a key's bias is rounding
      }
      const auto expected = golden_.at(words + name);
      // tuned - base is not delta to the last bit
      differ += (delta - expected).abs().gt(1e-7).sum().item<int64_t>();
      carried += delta.numel();
    }
    EXPECT_GT(carried, 2000) << words;
    EXPECT_LE(differ, carried / 1000) << words;
  }
}

TEST_F(GradientJob, MaskGoesOnTopOfAnyMethod) {
  auto options = job("source", "target", false);
  options.labels = false;
  const auto plain = update(options);
  options.labels = true;
  options.mask = Mask::kNormal;
  const auto normal = update(options);
  const auto rows = carried();
  EXPECT_EQ(record_.at("mask").at("asked"), 12);
  options.mask = Mask::kForce;
  const auto forced = update(options);
  ASSERT_EQ(normal.size(), plain.size());
  int64_t kept = 0, all = 0;
  for (const auto& [name, delta] : plain) {
    const auto sign = forced.at(name).sign();
    EXPECT_TRUE(at::equal(normal.at(name), at::where(delta.sign() == sign, delta, 0 * delta)))
        << name;
    EXPECT_TRUE(at::equal(forced.at(name), delta.abs() * sign)) << name;
    kept += normal.at(name).ne(0).sum().item<int64_t>();
    all += delta.ne(0).sum().item<int64_t>();
    if (const auto row = rows.find(name); row != rows.end()) {
      EXPECT_NEAR(
          row->second.at("sign_agreement").get<double>(),
          normal.at(name).ne(0).sum().item<double>() / delta.ne(0).sum().item<double>(), 1e-12);
    }
  }
  EXPECT_GT(kept, all / 4);  // about half
  EXPECT_LT(kept, 3 * all / 4);
}

TEST_F(GradientJob, OutputsByGradientsLeaveTheUpdateOnTheSameModel) {
  auto options = job("target", "target", true);
  options.align.method = "gradient-output";
  const auto found = update(options);
  const auto expected =
      tests::difference(options.tuned, options.target);  // with embeddings, which stay
  const auto rows = carried();
  int64_t compared = 0;
  for (const auto& [name, delta] : expected) {
    if (rows.contains(name) || rows.contains(name + "#q")) {
      // What gradients do not determine comes from activations, and both say the identity.
      EXPECT_LT(tests::frobenius_error(found.at(name), delta), 1e-5) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
  int64_t by_gradients = 0;
  for (const auto& row : record_.at("spaces")) {
    by_gradients += row.contains("statistics") ? 1 : 0;
  }
  EXPECT_EQ(by_gradients, 2 * 6 + 1);  // q, k, v, attention, MLP twice; and the projection
}

TEST_F(GradientJob, OutputsByGradientsAreOtherMapsAndCertified) {
  auto options = job("source", "target", false);
  options.labels = false;
  const auto by_activations = update(options);
  options.labels = true;
  options.align.method = "gradient-output";
  for (const auto rank : {maps::Rank::kComplete, maps::Rank::kArbitrary, maps::Rank::kTruncate}) {
    options.align.maps.rank = rank;
    const auto found = update(options);
    const auto& weight = "visual.transformer.resblocks.0.mlp.c_fc.weight";
    EXPECT_GT(tests::frobenius_error(found.at(weight), by_activations.at(weight)), 0.1);
    for (const auto& row : record_.at("spaces")) {
      if (row.contains("orthogonality")) {
        EXPECT_LT(row.at("orthogonality").get<double>(), 1e-6) << row;
        EXPECT_LT(row.at("asymmetry").get<double>(), 1e-6) << row;
      }
    }
  }
}

TEST_F(GradientJob, OutputsByGradientsBetweenDepths) {
  const auto blocks = 4;
  auto options = job("source", "target", false);
  tests::deepen(options.target, scratch_ / "deep", blocks);
  options.target = scratch_ / "deep";
  options.align.method = "gradient-output";
  for (const auto depth : {transport::Depth::kDivided, transport::Depth::kStretch}) {
    options.align.depth = depth;
    const auto found = update(options);
    std::set<int64_t> stages;
    for (const auto& row : record_.at("spaces")) {
      if (row.contains("statistics")) {
        stages.insert(row.at("stage").get<int64_t>());
      }
    }
    EXPECT_EQ(stages.size(), blocks + 1) << "every block of the target, and the projection";
    const auto last =
        found.at(c10::str("visual.transformer.resblocks.", blocks - 1, ".attn.out_proj.weight"));
    EXPECT_GT(last.norm().item<double>(), 0);
    EXPECT_TRUE(last.isfinite().all().item<bool>());
  }
}

// Factors stay factors through maps. A mask leaves none.
TEST_F(GradientJob, Adapters) {
  JobOptions options;
  options.source = options.target = tests::case_path("adapted_llama");
  options.tuned = tests::case_path("adapted_llama_adapter");
  const auto ids = tests::case_inputs("adapted_llama").at("input_ids");
  auto wanted = ids.roll({-1}, {1});
  wanted.select(1, -1).fill_(gradient::kIgnored);
  tests::write_inputs(
      scratch_ / "tokens.safetensors", {{"input_ids", ids}, {"wanted", wanted.contiguous()}});
  options.calibration = scratch_ / "tokens.safetensors";
  options.labels = true;
  options.align.method = "gradient-output";
  options.out = scratch_ / "adapter";
  const auto record = tests::run(options);
  EXPECT_EQ(record.at("write"), "adapter");
  int64_t carried = 0;
  for (const auto& row : record.at("parameters")) {
    if (row.contains("source_norm")) {
      EXPECT_TRUE(row.contains("rank"));
      EXPECT_NEAR(row.at("norm_error").get<double>(), 0, 1e-5);
      ++carried;
    }
  }
  EXPECT_GT(carried, 3);
  options.mask = Mask::kNormal;
  options.out = scratch_ / "masked";
  tests::expect_parts(
      tests::error_of([&] { tests::run(options); }), "a mask leaves no factors", "--write model");
  options.write = "update";
  options.align.method = "copy";
  const auto masked = update(options);
  options.mask = Mask::kNone;
  options.labels = false;
  for (const auto& [name, delta] : update(options)) {
    const auto& kept = masked.at(name);
    if (name == "lm_head.weight") {
      continue;  // a head, which stays
    }
    EXPECT_TRUE(at::logical_or(kept == 0, kept == delta).all().item<bool>()) << name;
    EXPECT_LT(kept.norm().item<double>(), delta.norm().item<double>()) << name;
    EXPECT_GT(kept.norm().item<double>(), 0) << name;
  }
}

// A process that is killed leaves what it has; the next one ends with the same bytes.
TEST_F(GradientJob, GoesOnToTheSameBytes) {
  struct Killed {};
  auto options = job("source", "target", false);
  options.align.method = "gradient-output";
  options.mask = Mask::kForce;
  options.vote = Vote::kMajority;
  options.save_every = 0;
  const auto whole = update(options);
  const auto record = tests::read_bytes(options.out / "theseus.json");
  const auto bytes = tests::read_bytes(options.out / "update.safetensors");
  for (const auto* when :
       {"the target's gradients", "gradients", "walking stage 1 ", "walking stage 3 ",
        "solving stage 3 ", "writing"}) {
    SCOPED_TRACE(when);
    fs::remove_all(options.out);
    bool killed = false;
    try {
      transport_job(options, [&](double done, double, const std::string& doing) {
        if (doing.starts_with(when) && (done > 0 || doing == "writing")) {
          throw Killed();
        }
      });
    } catch (const Killed&) {
      killed = true;
    }
    EXPECT_TRUE(killed);
    tests::run(options);
    EXPECT_EQ(tests::read_bytes(options.out / "update.safetensors"), bytes);
    EXPECT_EQ(tests::read_bytes(options.out / "theseus.json"), record);
  }
}

TEST_F(GradientJob, Refusals) {
  auto options = job("source", "target", false);
  options.align.method = "gradient-mask";
  tests::expect_parts(tests::error_of([&] { tests::run(options); }), "needs equal widths");
  options.align.method = "procrustes";
  options.mask = Mask::kNormal;
  options.labels = false;
  tests::expect_parts(tests::error_of([&] { tests::run(options); }), "--mask", "--labelled");
  options.labels = true;
  options.calibration.clear();
  options.align.method = "gradient-output";
  tests::expect_parts(tests::error_of([&] { tests::run(options); }), "--labelled is required");
  options = job("source", "target", false);
  options.mask = Mask::kNormal;
  const auto nothing = [](double, double, const std::string&) {};
  tests::expect_parts(
      tests::error_of([&] { align_job(options, nothing); }), "a mask is of one update");
}

TEST_F(GradientJob, NeedsItsMemory) {
  auto options = job("target", "target", true);
  const auto nothing = [](double, double, const std::string&) {};
  const auto error = [&] {
    auto opened = open_all(options, nothing);
    const transport::Aligner aligner(
        opened.source, opened.target, opened.find_calibration(), options.align, nothing);
    const auto plan = plan_of(options, opened, aligner.route(), aligner.towers());
    return tests::error_of([&] { require_memory_for_labels(options, opened, plan); });
  };
  options.mask = Mask::kNormal;
  options.align.memory = 30'000;  // more than the weights, less than with their gradients
  tests::expect_parts(error(), "--mask needs", "--memory allows 30.0 kB", "procrustes");
  options.mask = Mask::kNone;
  options.align.method = "gradient-output";
  tests::expect_parts(error(), "gradient-output needs", "--memory allows 30.0 kB");
}

TEST(MethodWords, SetOptions) {
  JobOptions job;
  set_method("procrustes:center:whiten=0.25:mask=force:vote=majority", job);
  EXPECT_EQ(job.align.method, "procrustes");
  EXPECT_TRUE(job.align.maps.center);
  EXPECT_EQ(job.align.maps.whiten, 0.25);
  EXPECT_EQ(job.mask, Mask::kForce);
  EXPECT_EQ(job.vote, Vote::kMajority);
  job = {};
  set_method("procrustes:mask", job);
  EXPECT_EQ(job.mask, Mask::kNormal);
  set_method("pinv-tikhonov:ridge=1e-3", job);
  EXPECT_EQ(job.align.maps.ridge, 1e-3);
  const auto error = [](const char* words) {
    return tests::error_of([&] {
      JobOptions job;
      set_method(words, job);
    });
  };
  tests::expect_parts(error("procrutes"), "unknown method 'procrutes'");
  tests::expect_parts(error("procrustes:centre"), "'centre' is none of: center mask");
  tests::expect_parts(error("procrustes:center=1"), "center takes no value");
  tests::expect_parts(error("procrustes:whiten=a"), "whiten='a' is not a number");
  tests::expect_parts(error("procrustes:whiten=0.7"), "from 0 to 0.5");
  tests::expect_parts(error("procrustes:ridge=1"), "ridge has no effect with method procrustes");
  EXPECT_EQ(method_words(job.align), "pinv-tikhonov:ridge=0.001");
  job = {};
  set_method("stream:statistics=rows:rank=truncate", job);
  EXPECT_EQ(job.align.statistics, transport::Statistics::kRows);
  EXPECT_EQ(job.align.maps.rank, maps::Rank::kTruncate);
  EXPECT_TRUE(job.align.maps.stream);
  EXPECT_EQ(method_words(job.align), "stream:rank=truncate:statistics=rows");
  set_method("procrustes", job);
  EXPECT_FALSE(job.align.maps.stream);
  set_method("pinv:stream", job);
  EXPECT_EQ(method_words(job.align), "pinv:stream:rank=truncate:statistics=rows");
  set_method("procrustes:stream", job);
  EXPECT_TRUE(job.align.maps.stream);
  tests::expect_parts(error("gradient-output:stream"), "stream has no effect with method gradient");
  tests::expect_parts(error("pad:center"), "center has no effect with method pad");
  tests::expect_parts(error("procrustes:vote=mean"), "no effect without mask");
}

}  // namespace
}  // namespace theseus::output
