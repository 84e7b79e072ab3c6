// Every unit of a space goes to one place (or to `copies` places) of the target's space:
//
//   order [copies * n]: the source unit of each target unit,   E = one_hot(order) [copies * n, n]
//
// Spaces whose units are the same ones share an order: the residual stream all its taps, q its k, v
// its mix, the MLP's up and gate its mid.

#include "tests/support/planted_maps.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/base/error.h"

namespace theseus::tests {
namespace {

using Order = std::vector<int64_t>;

std::string last_word(const std::string& space) {
  return space.substr(space.rfind('.') + 1);
}

std::string first_word(const std::string& space) {
  return space.substr(0, space.find('.'));
}

class Builder {
 public:
  Builder(const model::Model& source, Planting planting, uint64_t seed)
      : architecture_(source.architecture()), planting_(planting), seed_(seed) {
    result_.copies = planting == Planting::kWidened ? 2 : 1;
    for (const auto& [name, space] : architecture_.spaces) {
      behind_.insert(space.behind);
    }
  }

  PlantingMaps build() {
    for (const auto& parameter : architecture_.parameters) {
      one_table_for_all_heads_ |= std::count(parameter.axes.begin(), parameter.axes.end(), kHead);
      one_residual_ |= std::count(parameter.axes.begin(), parameter.axes.end(), "stream");
    }
    for (const auto& parameter : architecture_.parameters) {
      for (size_t i = 0; i < parameter.axes.size(); ++i) {
        add(map_key(parameter, i), parameter.shape[i]);
      }
    }
    for (const auto& [name, space] : architecture_.spaces) {
      add(name, space.width);
    }
    return std::move(result_);
  }

  static constexpr const char* kHead = "<head>";

 private:
  void add(const std::string& key, int64_t width) {
    if (!key.empty() && width > 0 && !result_.expand.contains(key)) {
      const auto map = expansion(key, width);
      require(
          map.size(1) == width, "space ", key, " has width ", width, "; planted for ", map.size(1));
      result_.expand[key] = map;
    }
  }

  at::Tensor expansion(const std::string& key, int64_t width) const {
    if (last_word(key) == kHead) {
      return one_hot(query_heads(first_word(key), tower_of(key)), width);
    }
    const auto found = architecture_.spaces.find(key);
    const auto space = found == architecture_.spaces.end() ? model::Space{} : found->second;
    if (space.heads > 0) {
      return one_hot(head_units(key, space), width);
    }
    const auto units = space.behind.empty() ? key : space.behind;
    if (behind_.contains(units) || key == "embed") {
      return one_hot(shuffled(units, width, result_.copies), width);
    }
    return residual(key, width);
  }

  // Whatever else is as wide as the tower is its residual stream, or may be ordered like it. T5's two
  // stacks read one embedding, so theirs are one.
  at::Tensor residual(const std::string& key, int64_t width) const {
    require(
        width == tower_of(key).width, "space ", key, " of width ", width,
        " is neither heads nor MLP units nor as wide as its tower");
    const auto word = one_residual_ ? "stream" : first_word(key) + ".stream";
    if (planting_ != Planting::kRotated) {
      return one_hot(shuffled(word, width, result_.copies), width);
    }
    const auto drawn = at::randn({width, width}, generator_of(seed_, word), at::kDouble);
    return std::get<0>(at::linalg_qr(drawn));
  }

  // Key and value heads in a new order; the query heads of each follow it, in a new order themselves.
  Order key_heads(const std::string& attention, const model::Tower& tower) const {
    return shuffled(attention + ".heads", tower.key_value_heads, result_.copies);
  }

  Order group(const std::string& attention, const model::Tower& tower, size_t slot) const {
    const auto each = tower.heads / tower.key_value_heads;
    auto heads = shuffled(c10::str(attention, ".group.", slot), each, 1);
    const auto first = key_heads(attention, tower)[slot] * each;
    std::for_each(heads.begin(), heads.end(), [&](int64_t& head) { head += first; });
    return heads;
  }

  Order query_heads(const std::string& attention, const model::Tower& tower) const {
    Order all;
    for (size_t slot = 0; slot < key_heads(attention, tower).size(); ++slot) {
      const auto heads = group(attention, tower, slot);
      all.insert(all.end(), heads.begin(), heads.end());
    }
    return all;
  }

  Order head_units(const std::string& key, const model::Space& space) const {
    const auto& tower = tower_of(key);
    const auto attention = attention_of(key);
    const auto word = last_word(key);
    const bool scores = word.ends_with("q") || word.ends_with("k");
    const auto key_order = key_heads(attention, tower);
    Order all;
    for (size_t slot = 0; slot < key_order.size(); ++slot) {
      const bool shared = space.heads == tower.key_value_heads;
      const auto heads = shared ? Order{key_order[slot]} : group(attention, tower, slot);
      const auto units =
          space.rigid_heads
              ? counted(tower.head_dim)
              : shuffled(c10::str(attention, scores ? ".qk." : ".v.", slot), tower.head_dim, 1);
      for (const auto head : heads) {
        for (const auto unit : units) {
          all.push_back(head * tower.head_dim + unit);
        }
      }
    }
    return all;
  }

  // What shares an order of heads: one attention, or where a table of relative positions serves all
  // blocks of a stack, all its self attentions.
  std::string attention_of(const std::string& key) const {
    const bool cross = last_word(key).starts_with("cross_");
    if (one_table_for_all_heads_ && !cross) {
      return first_word(key);
    }
    return key.substr(0, key.rfind('.')) + (cross ? ".cross" : "");
  }

  const model::Tower& tower_of(const std::string& key) const {
    for (const auto& tower : architecture_.towers) {
      if (key == "stream" || first_word(key) == tower.name) {
        return tower;
      }
    }
    throw InputError("space " + key + " belongs to no tower");
  }

  Order shuffled(const std::string& word, int64_t units, int64_t copies) const {
    const auto drawn = at::randperm(units * copies, generator_of(seed_, word)) % units;
    return {drawn.data_ptr<int64_t>(), drawn.data_ptr<int64_t>() + drawn.numel()};
  }

  static Order counted(int64_t units) {
    Order order(static_cast<size_t>(units));
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  static at::Tensor one_hot(const Order& order, int64_t width) {
    return at::one_hot(at::tensor(order, at::kLong), width).to(at::kDouble);
  }

  const model::Architecture& architecture_;
  Planting planting_;
  uint64_t seed_;
  std::set<std::string> behind_;
  bool one_table_for_all_heads_ = false;
  bool one_residual_ = false;
  PlantingMaps result_;
};

}  // namespace

at::Generator generator_of(uint64_t seed, const std::string& word) {
  return at::make_generator<at::CPUGeneratorImpl>(
      std::hash<std::string>{}(c10::str(seed, " ", word)));
}

std::string map_key(const model::Parameter& parameter, size_t axis) {
  const auto& space = parameter.axes[axis];
  if (space == Builder::kHead) {
    return first_word(parameter.tensor) + "." + space;
  }
  return model::is_fixed(space) ? "" : space;
}

std::optional<size_t> reading_axis(
    const model::Architecture& architecture, const model::Parameter& parameter) {
  if (parameter.role != model::Role::kWeight) {
    return std::nullopt;
  }
  const auto layer = std::find_if(
      architecture.linears.begin(), architecture.linears.end(),
      [&](const model::Linear& linear) { return linear.weight == parameter.tensor; });
  require<InternalError>(
      layer != architecture.linears.end(), parameter.tensor, " belongs to no linear layer");
  return layer->transposed ? 0 : 1;
}

PlantingMaps planting_maps(const model::Model& source, Planting planting, uint64_t seed) {
  return Builder(source, planting, seed).build();
}

}  // namespace theseus::tests
