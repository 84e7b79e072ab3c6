#include "theseus/model/family.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/layers.h"

namespace theseus::model {

bool takes(const std::vector<std::string>& inputs, std::string_view name) {
  return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
}

int64_t Architecture::blocks() const {
  int64_t count = 0;
  for (const auto& tower : towers) {
    count += tower.blocks;
  }
  return count;
}

std::pair<const Tower*, int64_t> Architecture::tower_of(int64_t block) const {
  int64_t first = 0;
  const Tower* tower = towers.data();
  for (; block >= first + tower->blocks; ++tower) {
    first += tower->blocks;
  }
  return {tower, first};
}

std::string Architecture::role(const std::string& name, int64_t block) const {
  const bool prefixed = !prefix.empty() && name.starts_with(prefix);
  const auto bare = prefixed ? name.substr(prefix.size()) : name;
  return block == kOuter ? bare : role_of(bare);
}

const Parameter* Architecture::find_parameter(const std::string& wanted, int64_t block) const {
  const auto found = places.find({block, wanted});
  return found == places.end() ? nullptr : &parameters[found->second];
}

void Architecture::adopt(Declaration&& declaration) {
  declaration.finish();
  parameters = std::move(declaration.parameters);
  linears = std::move(declaration.linears);
  norms = std::move(declaration.norms);
  spaces = std::move(declaration.spaces);
  ties = std::move(declaration.ties);
  not_run = std::move(declaration.not_run);
  aliases = declaration.aliases();
  for (size_t i = 0; i < parameters.size(); ++i) {
    places[{parameters[i].block, role(parameters[i].name, parameters[i].block)}] = i;
  }
}

BlockSpaces::BlockSpaces(const Tower& tower, int64_t block) {
  const auto side = [&](const char* name, int64_t width, int64_t heads = 0) {
    return Side{
        .space = c10::str(tower.name, ".", block, ".", name), .width = width, .heads = heads};
  };
  const auto inner = tower.heads * tower.head_dim;
  const auto shared = tower.key_value_heads * tower.head_dim;
  attn_in = side("attn_in", tower.width);
  q = side("q", inner, tower.heads);
  k = side("k", shared, tower.key_value_heads);
  v = side("v", shared, tower.key_value_heads);
  attn_mix = side("attn_mix", inner, tower.heads);
  attn_out = side("attn_out", tower.width);
  mlp_in = side("mlp_in", tower.width);
  mlp_up = side("mlp_up", tower.mlp);
  mlp_mid = side("mlp_mid", tower.mlp);
  mlp_out = side("mlp_out", tower.width);
}

int64_t tokens_of(const Tower& tower) {
  const auto grid = tower.grid();
  require(grid > 0, "a patch of ", tower.patch, " pixels does not fit an image of ", tower.image);
  return grid * grid + 1;
}

at::Tensor checked_ids(
    const Pass& pass, const std::string& name, int64_t vocabulary, int64_t positions) {
  const auto ids = pass.find_input(name);
  require(ids.defined(), "input ", name, " is missing");
  require(ids.numel() > 0, "input ", name, " is empty: ", ids.sizes());
  require(
      ids.dim() == 2 && at::isIntegralType(ids.scalar_type(), false), "input ", name,
      " must be integers [n, t], found ", ids.scalar_type(), " ", ids.sizes());
  require(
      positions == 0 || ids.size(1) <= positions, "input ", name, " has ", ids.size(1),
      " tokens; the model has ", positions, " positions");
  const auto [least, most] = at::aminmax(ids);
  require(
      least.item<int64_t>() >= 0 && most.item<int64_t>() < vocabulary, "input ", name,
      " holds ids from ", least.item<int64_t>(), " to ", most.item<int64_t>(),
      "; the vocabulary has ", vocabulary);
  return ids.to(at::kLong);
}

at::Tensor checked_mask(const Pass& pass, const std::string& name, at::IntArrayRef shape) {
  const auto mask = pass.find_input(name);
  if (!mask.defined()) {
    return mask;
  }
  require(
      mask.sizes() == shape, "input ", name, " has shape ", mask.sizes(),
      "; the ids it masks have ", shape);
  require(
      mask.eq(0).logical_or(mask.eq(1)).all().item<bool>(), "input ", name,
      " holds values other than 0 and 1");
  require(
      mask.eq(1).any(-1).all().item<bool>(), "input ", name, " masks every token of a sequence");
  return mask;
}

at::Tensor checked_images(const Pass& pass, int64_t size) {
  const auto images = pass.find_input("pixel_values");
  require(images.defined(), "input pixel_values is missing");
  require(
      images.dim() == 4 && images.size(0) > 0 && images.size(1) == 3 && images.size(2) == size &&
          images.size(3) == size && at::isFloatingType(images.scalar_type()),
      "input pixel_values must be floating point [n, 3, ", size, ", ", size, "], found ",
      images.scalar_type(), " ", images.sizes());
  require(all_finite(images), "input pixel_values holds NaN or infinity");
  return images;
}

namespace {
constexpr int64_t kLargest = int64_t{1} << 31;
}  // namespace

int64_t size_of(const Json& config, std::string_view key) {
  const auto value = config.integer(key);
  require(
      value > 0 && value <= kLargest, config.where(key), ": ", value,
      " is not a size; expected 1 to ", kLargest);
  return value;
}

int64_t size_of(const Json& config, std::string_view key, int64_t fallback) {
  return config.has(key) ? size_of(config, key) : fallback;
}

int64_t scaled_size(int64_t width, const Json& config, std::string_view key, double fallback) {
  const double size = static_cast<double>(width) * config.number(key, fallback);
  require(
      size >= 1 && size <= static_cast<double>(kLargest), config.where(key), ": a width of ", width,
      " times ", config.dump(key), " is not a size; expected 1 to ", kLargest);
  return static_cast<int64_t>(size);
}

void refuse_unless(const Json& config, std::string_view key, std::string_view only) {
  require(
      !config.has(key) || config.equals(key, only), config.where(key), ": ", config.dump(key),
      " is not implemented; expected ", only);
}

void refuse_others(const Json& config, std::initializer_list<std::string_view> known) {
  for (const auto& key : config.keys()) {
    const auto text = config.dump(key);
    const bool off = text == "null" || text == "false" || text == "{}";
    require(
        off || std::find(known.begin(), known.end(), key) != known.end(), config.where(key), ": ",
        text, " is not implemented");
  }
}

int64_t square_of(const Json& config, std::string_view key, int64_t fallback) {
  const auto sides = config.integers(key);
  if (sides.empty()) {
    require(!config.has(key), config.where(key), ": the list is empty");
    return fallback;
  }
  constexpr int64_t kLargestSide = 1 << 20;
  require(
      sides.size() <= 2 && sides.front() == sides.back() && sides.front() > 0 &&
          sides.front() <= kLargestSide,
      config.where(key), ": ", config.dump(key), " is not implemented; expected one size");
  return sides.front();
}

int64_t label_count(const Json& config) {
  if (config.has("id2label")) {
    return static_cast<int64_t>(config.object("id2label").keys().size());
  }
  return size_of(config, "num_labels", 2);
}

int64_t quotient(const Json& config, int64_t whole, int64_t part, std::string_view what) {
  require(
      whole % part == 0, config.where(), ": ", what, ": ", whole, " is not a multiple of ", part);
  return whole / part;
}

}  // namespace theseus::model
