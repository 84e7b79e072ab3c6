#include "theseus/checkpoint/index.h"

#include <algorithm>
#include <system_error>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/base/text.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;

// Names in an index are untrusted: one that leaves the directory would read other files.
void check_inside(const ShardIndex& index, const std::string& shard) {
  const fs::path path(shard);
  const bool leaves = path.is_absolute() ||
                      std::find(path.begin(), path.end(), fs::path("..")) != path.end() ||
                      shard.find_first_of(std::string("\\\0", 2)) != std::string::npos;
  require(
      !leaves && path.has_filename(), index.path.string(), ": the shard '", printable(shard),
      "' is not a file inside the index's directory");
}

void check_present(
    const ShardIndex& index, const std::string& shard, const std::vector<std::string>& names) {
  std::error_code error;
  require(
      fs::exists(index.path.parent_path() / shard, error), index.path.string(),
      " names the shard '", printable(shard), "', which is missing (", names.size(),
      " tensors, such as '", names.front(), "')");
}

}  // namespace

ShardIndex read_index(const fs::path& path) {
  ShardIndex index;
  index.path = path;
  const Json map = Json::parse_file(path).object("weight_map");
  for (const auto& name : map.keys()) {
    const auto shard = map.text(name);
    index.weight_map.emplace(name, shard);
    index.shards[shard].push_back(name);
  }
  require(!index.shards.empty(), path.string(), ": weight_map is empty");
  for (const auto& [shard, names] : index.shards) {
    check_inside(index, shard);
    check_present(index, shard, names);
  }
  return index;
}

void check_shard(
    const ShardIndex& index, const std::string& shard, std::span<const TensorInfo> held) {
  const auto file = (index.path.parent_path() / shard).string();
  const auto index_name = index.path.filename().string();
  for (const TensorInfo& tensor : held) {
    const auto mapped = index.weight_map.find(tensor.name);
    require(
        mapped != index.weight_map.end(), file, " holds the tensor '", printable(tensor.name),
        "', which ", index_name, " does not mention");
    require(
        mapped->second == shard, file, " holds the tensor '", printable(tensor.name), "', which ",
        index_name, " says is in ", mapped->second, ": the name would stand for two tensors");
  }
  for (const auto& name : index.shards.at(shard)) {
    const auto found = std::lower_bound(
        held.begin(), held.end(), name,
        [](const TensorInfo& tensor, const std::string& wanted) { return tensor.name < wanted; });
    require(
        found != held.end() && found->name == name, file, " lacks the tensor '", name, "', which ",
        index_name, " says is in it");
  }
}

}  // namespace theseus::checkpoint
