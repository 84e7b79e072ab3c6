#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/stats/route.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {

constexpr const char* kAlignmentFile = "alignment.json";

// One row a map: its space, rank and certificates.
nlohmann::ordered_json describe(int64_t stage, const MapSet& maps, const stats::Moments& moments);
nlohmann::ordered_json describe(const stats::Route& route);
stats::Route read_route(const nlohmann::json& json);

// A directory with maps and moments by stage and alignment.json.
class Alignment {
 public:
  // Throws InputError when the directory is not an alignment of this version.
  static Alignment open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  const nlohmann::json& about() const { return about_; }
  const stats::Route& route() const { return route_; }
  MapSet maps(int64_t stage) const;
  // Throws InputError unless the files hold a map of every space in `needed`; reads headers.
  void require_maps(const SpaceSet& needed) const;
  // The map of one space [ds, dt]: where several blocks of the source go to its block, that of the
  // last. Undefined when there is none; throws InputError as require_maps does when it is damaged.
  at::Tensor find_map(const std::string& space) const;

  // Returns the files.
  static std::vector<std::filesystem::path> write_stage(
      const std::filesystem::path& directory,
      int64_t stage,
      const MapSet& maps,
      const stats::Moments& moments);
  // The content of alignment.json: what is known of the maps, and which files hold them.
  static nlohmann::ordered_json whole_about(
      const std::filesystem::path& directory, const nlohmann::ordered_json& about);

 private:
  std::filesystem::path directory_;
  nlohmann::json about_;
  stats::Route route_;
};

}  // namespace theseus::transport
