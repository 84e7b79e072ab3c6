#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/output/carried_files.h"
#include "theseus/output/opened.h"
#include "theseus/output/write_model.h"
#include "theseus/transport/plan.h"
#include "theseus/transport/schedule.h"

namespace theseus::output {

// Parts of theseus.json.

nlohmann::ordered_json describe_depth(
    const stats::Route& route,
    const Opened& opened,
    transport::Depth depth,
    const at::Tensor& similarity);
nlohmann::ordered_json describe_plan(const std::vector<transport::Disposition>& plan);
nlohmann::ordered_json describe_schedule(const transport::Schedule& schedule, c10::Device device);

// How many parameters go which way.
nlohmann::ordered_json totals_of(const nlohmann::ordered_json& parameters);

// The plan with what came of it: norms, and what the stored dtype lost (`written` may be null).
nlohmann::ordered_json describe_carried(
    const std::vector<transport::Disposition>& plan,
    const CarriedFiles& files,
    const WrittenModel* written);

// The norm of the source's update, and the parts of it that go nowhere.
nlohmann::ordered_json describe_update(
    const std::vector<transport::Disposition>& plan, const Opened& opened);

// What the update changes and the plan does not carry, with the reasons; a line for each role.
std::vector<std::string> notes_on_update(
    const std::vector<transport::Disposition>& plan, const Opened& opened);
// What a reader should know about the maps, a line each: spaces short of full rank, fall backs.
std::vector<std::string> notes_on_maps(const nlohmann::ordered_json& rows);

}  // namespace theseus::output
