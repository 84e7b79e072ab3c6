#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/base/side_by_side.h"
#include "theseus/output/assembly.h"
#include "theseus/output/carried_files.h"
#include "theseus/output/job_maps.h"
#include "theseus/output/output_dtype.h"
#include "theseus/output/work_directory.h"
#include "theseus/output/write_model.h"
#include "theseus/transport/carry.h"

namespace theseus::output {

// One update on its way to the target, from its files to the output.
class Carriage {
 public:
  // Opens and checks everything, so that what is wrong is said before the work begins.
  Carriage(const JobOptions& options, const transport::Watch& watch);

  // Null: the maps have to be made.
  const transport::Alignment* alignment() const {
    return opened_.alignment ? &*opened_.alignment : nullptr;
  }
  c10::Device device() const { return options_.placement.device; }
  int64_t stages() const { return static_cast<int64_t>(maps_->route.pairs.size()) + 2; }

  // Makes maps, and carries every group as its maps come.
  void align_and_carry(const transport::Watch& watch);
  // Through the maps of one stage of an alignment; stages come in order.
  void carry(int64_t stage, const transport::MapSet& maps);

  // The record of an output that this very job has made before: nothing is to be done. Else null.
  const nlohmann::ordered_json& delivered() const { return delivered_; }

  // Writes the output and returns its record.
  nlohmann::ordered_json deliver(const transport::Watch& watch);

 private:
  void begin(const transport::Watch& watch);
  // What can be written while maps are made: not where the dtype depends on all that is carried.
  bool writes_as_it_goes() const;
  void prepare_writer(const Assembly* assembly);
  // Of what is carried, on the target; of the output where that is a model.
  Addition addition_of(const Assembly& assembly, const std::optional<WrittenModel>& written) const;
  using Group = std::map<std::string, transport::Carried>;
  // What puts the group of stages `first` to `last` - 1 on disk.
  std::function<void()> end_group(int64_t first, int64_t last);
  void store(int64_t first, int64_t last, Group group, const nlohmann::ordered_json& rows);

  JobOptions options_;
  std::unique_ptr<Aside> warming_;
  Opened opened_;
  std::string write_;
  nlohmann::ordered_json delivered_;
  std::optional<WorkDirectory> work_;
  std::optional<CarriedFiles> files_;
  std::optional<Maps> maps_;
  std::vector<transport::Disposition> plan_;
  std::optional<transport::Schedule> schedule_;
  std::optional<transport::Carrier> carrier_;
  std::optional<Storage> storage_;     // of the output, when it is a model
  std::optional<ModelWriter> writer_;  // of the same
  Group group_;                        // what has come of a group so far
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  std::optional<Aside> hashing_;  // of the inputs; ends before what it reads
};

// See find_finished.
nlohmann::ordered_json find_delivered(const JobOptions& options, const transport::Watch& watch);

}  // namespace theseus::output
