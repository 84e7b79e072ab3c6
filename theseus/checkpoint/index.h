#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "theseus/checkpoint/tensor_file.h"

namespace theseus::checkpoint {

// Which shard holds which tensors, as model.safetensors.index.json says it.
struct ShardIndex {
  std::filesystem::path path;
  std::map<std::string, std::string> weight_map;           // tensor -> shard
  std::map<std::string, std::vector<std::string>> shards;  // shard -> its tensors, sorted
};

// Throws InputError when it is no index, names a shard outside its directory, or a shard is missing.
ShardIndex read_index(const std::filesystem::path& path);

// Throws InputError unless `shard` holds exactly the tensors that the index says.
void check_shard(
    const ShardIndex& index, const std::string& shard, std::span<const TensorInfo> held);

}  // namespace theseus::checkpoint
