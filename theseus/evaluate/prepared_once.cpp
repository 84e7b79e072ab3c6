#include "theseus/evaluate/prepared_once.h"

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/evaluate/compare_place.h"
#include "theseus/output/opened.h"
#include "theseus/stats/prepare.h"

namespace theseus::evaluate {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

PreparedOnce::PreparedOnce(std::string data, int64_t batches, fs::path file)
    : data_(std::move(data)), batches_(batches), file_(std::move(file)) {}

PreparedOnce::~PreparedOnce() {
  std::error_code ignored;
  if (done_) {
    fs::remove(about(), ignored);
    fs::remove(file_, ignored);
  }
}

// Written last: while it is missing, the file may be half of one.
fs::path PreparedOnce::about() const {
  return file_.string() + ".json";
}

ordered_json PreparedOnce::give(output::JobOptions& job) const {
  job.calibration = data_;
  job.align.sampling.batches = batches_ > 0 ? batches_ : job.align.sampling.batches;
  if (stats::is_prepared(data_)) {
    return {{"path", data_}};
  }
  const auto drawn = prepare(job);
  job.calibration = file_;
  job.align.sampling.batches = job.align.sampling.draw = job.align.sampling.most =
      0;  // they are drawn
  job.split.clear();
  job.shots = 0;
  job.longest = 0;
  job.pack = 0;
  job.wording = {"", "", ""};
  return drawn;
}

ordered_json PreparedOnce::prepare(const output::JobOptions& job) const {
  std::error_code ignored;
  if (!fs::exists(about(), ignored)) {
    remove_abandoned(file_);
    auto source = model::Model::open(job.source);
    auto target = model::Model::open(job.target);
    auto drawn = stats::prepare_calibration(
        output::choice_of(job), source, target, file_, [](int64_t, int64_t) {});
    write_record(about(), {{"drawn", std::move(drawn)}, {"of", hash_of_file(file_)}});
  }
  const auto cure = c10::str(
      "remove ", file_.string(), " and ", about().string(), ", and the examples are read anew");
  const auto found = read_whole(about(), cure);
  require(
      fs::is_regular_file(file_, ignored) && found.at("of") == hash_of_file(file_),
      "the unfinished work is damaged: ", file_.string(), " is not there as it was written; ",
      cure);
  return found.at("drawn");
}

}  // namespace theseus::evaluate
