#include "theseus/model/declare.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::model {
namespace {

std::string last_word(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.empty() && pattern.back() == '*') {
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  if (!pattern.empty() && pattern.front() == '*') {
    return name.ends_with(pattern.substr(1));
  }
  return name == pattern;
}

}  // namespace

Declaration::Declaration(const checkpoint::Checkpoint& checkpoint, Spelling spelling)
    : checkpoint_(checkpoint), spelling_(std::move(spelling)) {
  for (const auto& wrapper : spelling_.wrappers) {
    wrapper_ = wrapper;
    if (find(spelling_.anchor) != nullptr) {
      return;
    }
  }
  wrapper_.clear();  // the first declaration will say what is missing
}

const checkpoint::TensorInfo* Declaration::find(const std::string& name) const {
  if (const auto* info = checkpoint_.find(wrapper_ + name)) {
    return info;
  }
  if (spelling_.aliases != nullptr) {
    for (const auto& alias : spelling_.aliases(name)) {
      if (const auto* info = checkpoint_.find(wrapper_ + alias)) {
        return info;
      }
    }
  }
  return nullptr;
}

const checkpoint::TensorInfo& Declaration::claim(
    const std::string& name, const std::vector<int64_t>& shape) {
  const auto* found = find(name);
  if (found == nullptr) {
    checkpoint_.info(wrapper_ + name);  // throws with the nearest names
  }
  require(
      found->shape == shape, found->name, " has shape ", at::IntArrayRef(found->shape),
      "; the config implies ", at::IntArrayRef(shape));
  claimed_.insert(found->name);
  return *found;
}

void Declaration::tensor(
    const std::string& name, std::vector<int64_t> shape, std::vector<std::string> axes) {
  require<InternalError>(
      shape.size() == axes.size(), name, ": ", shape.size(), " extents, ", axes.size(), " axes");
  const auto& info = claim(name, shape);
  parameters.push_back(
      {.name = name,
       .tensor = name,
       .stored = info.name,
       .row = 0,
       .shape = std::move(shape),
       .axes = std::move(axes),
       .block = block_});
}

void Declaration::space(const Side& side) {
  if (!is_fixed(side.space)) {
    auto& known = spaces[side.space];
    known.width = side.width;
    known.heads = std::max(known.heads, side.heads);
    known.rigid_heads = known.rigid_heads || side.rigid_heads;
    known.norm = known.norm.empty() ? side.norm : known.norm;
  }
}

void Declaration::linear(const std::string& module, const Side& out, const Side& in, bool bias) {
  tensor(module + ".weight", {out.width, in.width}, {out.space, in.space});
  parameters.back().role = Role::kWeight;
  if (bias) {
    tensor(module + ".bias", {out.width}, {out.space});
    parameters.back().role = Role::kBias;
  }
  space(out);
  space(in);
  linears.push_back(
      {.module = module,
       .weight = module + ".weight",
       .bias = bias ? module + ".bias" : "",
       .in = in.space,
       .out = {out.space},
       .block = block_});
}

// Rows of a fused tensor: one parameter, `row` moves behind them.
void Declaration::part(const std::string& name, const Side& out, const Side* in, int64_t& row) {
  Parameter part{
      .name = name + "#" + last_word(out.space),
      .tensor = name,
      .stored = find(name)->name,
      .row = row,
      .shape = {out.width},
      .axes = {out.space},
      .block = block_,
      .role = in == nullptr ? Role::kBias : Role::kWeight};
  if (in != nullptr) {
    part.shape.push_back(in->width);
    part.axes.push_back(in->space);
  }
  parameters.push_back(std::move(part));
  row += out.width;
}

void Declaration::fused(
    const std::string& module,
    const std::string& weight,
    const std::string& bias,
    const std::vector<Side>& outs,
    const Side& in) {
  Linear layer{.module = module, .weight = weight, .bias = bias, .in = in.space, .block = block_};
  int64_t rows = 0;
  for (const auto& out : outs) {
    rows += out.width;
    layer.out.push_back(out.space);
    space(out);
  }
  space(in);
  linears.push_back(std::move(layer));
  claim(weight, {rows, in.width});
  int64_t row = 0;
  for (const auto& out : outs) {
    part(weight, out, &in, row);
  }
  if (!bias.empty()) {
    claim(bias, {rows});
    row = 0;
    for (const auto& out : outs) {
      part(bias, out, nullptr, row);
    }
  }
}

void Declaration::reads_pooled(const std::string& pooled) {
  const auto& whole = spaces.at(linears.back().in);
  space({.space = pooled, .width = whole.width, .norm = whole.norm});
  linears.back().in = pooled;
}

void Declaration::projection(
    const std::string& name, const Side& out, const Side& in, const std::string& pooled) {
  tensor(name, {in.width, out.width}, {in.space, out.space});
  parameters.back().role = Role::kWeight;
  space(out);
  space(in);
  space({.space = pooled, .width = in.width, .norm = spaces.at(in.space).norm});
  linears.push_back(
      {.module = name,
       .weight = name,
       .transposed = true,
       .in = pooled,
       .out = {out.space},
       .block = block_});
}

void Declaration::tied_head(const std::string& module, const std::string& weight, const Side& in) {
  space(in);
  linears.push_back(
      {.module = module, .weight = weight, .in = in.space, .out = {"<vocab>"}, .block = block_});
}

void Declaration::norm(const std::string& module, const Side& out, bool bias) {
  tensor(module + ".weight", {out.width}, {out.space});
  parameters.back().role = Role::kGain;
  if (bias) {
    tensor(module + ".bias", {out.width}, {out.space});
    parameters.back().role = Role::kShift;
  }
  const Side in{out.space + "_raw", out.width};
  auto written = out;
  written.norm = bias ? module : "";  // RMS norms have none
  space(written);
  space(in);
  norms.push_back({.module = module, .in = in.space, .out = out.space, .block = block_});
}

void Declaration::head_norm(const std::string& module, int64_t width) {
  tensor(module + ".weight", {width}, {"<head unit>"});
  parameters.back().role = Role::kGain;
}

void Declaration::same_units(const Side& space, const Side& behind) {
  spaces[space.space].behind = behind.space;
}

void Declaration::tied(const std::string& name, const std::string& tied_to) {
  const auto* copy = find(name);
  ties.push_back(
      {.name = name, .tied_to = tied_to, .stored = copy == nullptr ? std::string() : copy->name});
  const auto* original = find(tied_to);
  if (copy == nullptr) {
    return;
  }
  require<InternalError>(original != nullptr, tied_to, " was not declared");
  claimed_.insert(copy->name);
  if (!copy->storage.empty() && copy->storage == original->storage &&
      copy->file == original->file) {
    return;
  }
  require(
      copy->dtype == original->dtype && copy->shape == original->shape &&
          at::equal(checkpoint_.tensor(copy->name), checkpoint_.tensor(original->name)),
      "the config ties ", name, " to ", tied_to,
      ", but the checkpoint holds two different tensors for them; set tie_word_embeddings to "
      "false or remove one");
}

std::vector<std::string> Declaration::claim_matching(
    std::initializer_list<std::string_view> patterns) {
  std::vector<std::string> found;
  for (const auto& info : checkpoint_.tensors()) {
    const std::string_view name = info.name;
    if (!name.starts_with(wrapper_) || claimed_.contains(name)) {
      continue;
    }
    const auto bare = name.substr(wrapper_.size());
    if (std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
          return matches(bare, pattern);
        })) {
      claimed_.insert(info.name);
      found.push_back(info.name);
    }
  }
  return found;
}

void Declaration::buffers(std::initializer_list<std::string_view> patterns) {
  claim_matching(patterns);
}

void Declaration::heads_not_run(std::initializer_list<std::string_view> patterns) {
  const auto found = claim_matching(patterns);
  not_run.insert(not_run.end(), found.begin(), found.end());
}

void Declaration::finish() const {
  std::vector<std::string> unknown;
  for (const auto& info : checkpoint_.tensors()) {
    if (!claimed_.contains(info.name)) {
      unknown.push_back(info.name);
    }
  }
  require(
      unknown.empty(), "the checkpoint holds ", unknown.size(),
      " tensors that this configuration does not use: ", joined(unknown, 6),
      ". A model with parts that theseus does not run is refused, not approximated");
}

}  // namespace theseus::model
