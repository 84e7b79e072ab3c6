#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "theseus/output/job.h"
#include "theseus/transport/imitate.h"

namespace theseus::output {

struct ImitateJob {
  // source, tuned, target, calibration, out, align.tokens, align.sampling, alpha, write (model or update),
  // fresh, placement and the words; the rest is for transport.
  JobOptions job;
  std::string
      familiar;  // examples that both bases read well, drawn as the calibration is; may be empty
  transport::ImitateOptions fit;
};

// The target, fitted to what fine-tuning did to the source (transport::imitate), in job.out. Blocks
// that are fitted are saved every job.save_every seconds, and an interrupted job goes on behind them. Throws InputError.
nlohmann::ordered_json imitate_job(const ImitateJob& given, const transport::Watch& watch);

}  // namespace theseus::output
