#include "theseus/transport/source_update.h"

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/bring.h"
#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/model/attach.h"
#include "theseus/model/layers.h"
#include "theseus/model/quantised.h"
#include "theseus/update/norm.h"

namespace theseus::transport {
namespace {

const std::vector<std::string> kAdapterWeights = {"adapter_model.safetensors", "adapter_model.bin"};
constexpr size_t kShown = 5;  // names in a message
constexpr std::string_view kWrappers[] = {"", "module.", "model.", "_orig_mod."};

std::string module_of(const std::string& tensor) {
  constexpr std::string_view kWeight = ".weight";
  return tensor.ends_with(kWeight) ? tensor.substr(0, tensor.size() - kWeight.size()) : "";
}

// The model's own name of a tensor in a tuned checkpoint, or empty.
std::string own_name(const std::map<std::string, std::string>& names, const std::string& stored) {
  for (const auto wrapper : kWrappers) {
    if (stored.starts_with(wrapper)) {
      const auto found = names.find(stored.substr(wrapper.size()));
      if (found != names.end()) {
        return found->second;
      }
    }
  }
  return {};
}

// Returns whether the tensor has a row for each token and `shape` has more such rows.
bool has_more_tokens(
    const model::Architecture& source,
    const std::string& tensor,
    const std::vector<int64_t>& shape) {
  const auto& all = source.parameters;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& parameter) {
    return parameter.tensor == tensor && !parameter.axes.empty() && parameter.axes[0] == "<vocab>";
  });
  return found != all.end() && shape.size() == found->shape.size() && shape[0] > found->shape[0] &&
         std::equal(shape.begin() + 1, shape.end(), found->shape.begin() + 1);
}

// Returns whether the tensor is a head onto classes.
bool is_head(const model::Architecture& source, const std::string& tensor) {
  const auto& all = source.parameters;
  return std::any_of(all.begin(), all.end(), [&](const auto& parameter) {
    return parameter.tensor == tensor && parameter.role != model::Role::kTable &&
           !parameter.axes.empty() && model::is_fixed(parameter.axes[0]) &&
           parameter.axes[0] != "<vocab>";
  });
}

// In float32, of what both are: float64 checkpoints may differ by less than float32 resolves.
at::Tensor difference(const at::Tensor& now, const at::Tensor& was) {
  const bool wide = now.scalar_type() == at::kDouble || was.scalar_type() == at::kDouble;
  const auto dtype = wide ? at::kDouble : at::kFloat;
  return (now.to(dtype) - was.to(dtype)).to(at::kFloat);
}

}  // namespace

SourceUpdate SourceUpdate::open(const std::filesystem::path& tuned, const model::Model& source) {
  return with_context("reading the tuned model " + tuned.string(), [&] {
    SourceUpdate update;
    update.path_ = tuned;
    update.base_ = std::make_shared<checkpoint::Checkpoint>(source.checkpoint());
    if (std::filesystem::is_directory(tuned) && update::is_adapter(tuned)) {
      update.adapter_ = std::make_shared<update::Adapter>(update::read_adapter(tuned));
      update.adapted_ = std::make_shared<model::Model>(model::Model::open(
          source.location().weights,
          {.family = source.location().family, .config = source.location().config}));
      update.adapted_->attach(*update.adapter_);
      update.note_what_is_not_a_parameter(source.architecture());
      if (update.adapter_->is_dora()) {
        update.notes_.emplace_back(
            "the adapter is a DoRA, which gives every row of the base's weights a new norm: its "
            "update is that of whole weights, and is carried as such");
      }
      return update;
    }
    update.open_dense(source);
    return update;
  });
}

void SourceUpdate::open_dense(const model::Model& source) {
  const auto& family = find_plugin(model::all_families(), "model family", source.location().family);
  tuned_ =
      std::make_shared<checkpoint::Checkpoint>(checkpoint::Checkpoint::open(path_, family.weights));
  model::refuse_quantised(
      (std::filesystem::is_directory(path_) ? path_ : path_.parent_path()) / "config.json",
      *tuned_);
  const auto names = model::spellings(source.architecture());
  const auto shapes = model::tensor_shapes(source.architecture());
  std::set<std::string> tied;
  for (const auto& tie : source.architecture().ties) {
    tied.insert(tie.name);
  }
  std::vector<std::string> unknown, misshapen, integer;
  bool heads_alone = true;
  for (const auto& info : tuned_->tensors()) {
    const auto name = own_name(names, info.name);
    if (tied.contains(name) || (name.empty() && source.checkpoint().find(info.name) != nullptr)) {
      note_if_changed(info.name);  // held by another name, or not run
      continue;
    }
    const bool more = !name.empty() && has_more_tokens(source.architecture(), name, info.shape);
    if (more) {
      added_rows_ = std::max(added_rows_, info.shape[0] - shapes.at(name)[0]);
    }
    if (name.empty()) {
      unknown.push_back(info.name);
    } else if (shapes.at(name) != info.shape && !more) {
      misshapen.push_back(c10::str(
          info.name, " ", at::IntArrayRef(info.shape), ", in the source ",
          at::IntArrayRef(shapes.at(name))));
      heads_alone = heads_alone && is_head(source.architecture(), name);
    } else if (!info.dtype.starts_with("F") && !info.dtype.starts_with("BF")) {
      integer.push_back(c10::str(info.name, " ", info.dtype));
    } else {
      stored_[name] = info.name;
    }
  }
  require(
      misshapen.empty(), "this is not a tune of the source ", source.location().weights.string(),
      ": other shapes: ", joined(misshapen, kShown),
      heads_alone
          ? "; its head is of another number of classes, and --head carry carries one only where "
            "all models have that number: give it a source with such a head"
          : "");
  require(
      integer.empty(), "weights must be floating point, found ", joined(integer, kShown),
      "; undo the quantisation first");
  require(
      !stored_.empty(), "this is not a tune of the source ", source.location().weights.string(),
      ": none of its tensors is the source's; it has ", joined(unknown, kShown),
      std::any_of(
          unknown.begin(), unknown.end(),
          [](const auto& name) { return name.find(".lora_A.") != std::string::npos; })
          ? "; give the directory of an adapter, not the file"
          : "");
  if (!unknown.empty()) {
    notes_.push_back(c10::str(
        "not carried, because the source has no such tensors (", unknown.size(),
        "): ", joined(unknown, kShown)));
    beside_ = unknown;
  }
  const auto missing = shapes.size() - stored_.size() - tied.size();
  std::error_code ignored;
  require(
      missing == 0 ||
          !std::filesystem::exists(path_ / source.location().config.filename(), ignored),
      "this is not a tune of the source ", source.location().weights.string(), ": it has a ",
      source.location().config.filename().string(), " of its own and lacks ", missing, " of the ",
      shapes.size(), " tensors; a bare state dict may hold the changed ones only");
  if (missing > 0 && missing < shapes.size()) {
    notes_.push_back(
        c10::str("the tuned model lacks ", missing, " of the source's tensors: unchanged"));
  }
  note_dtypes(source);
}

void SourceUpdate::note_if_changed(const std::string& stored) {
  const auto* was = base_->find(stored);
  if (was == nullptr) {
    return;
  }
  const auto& now = tuned_->info(stored);
  const auto before = base_->tensor(stored);
  auto after = tuned_->tensor(stored);
  if (after.dim() == before.dim() && after.dim() > 0 && after.size(0) > before.size(0)) {
    after = after.narrow(0, 0, before.size(0));  // tokens were added
  }
  const bool same = was->dtype == now.dtype && at::equal(after, before);
  if (!same) {
    notes_.push_back(c10::str(
        "the tuned model changes ", stored,
        ", which is tied to another tensor or not run: that part is not carried"));
  }
}

void SourceUpdate::note_dtypes(const model::Model& source) {
  for (const auto& parameter : source.architecture().parameters) {
    const auto stored = stored_.find(parameter.tensor);
    if (stored == stored_.end()) {
      continue;
    }
    const auto& now = tuned_->info(stored->second).dtype;
    const auto& was = source.checkpoint().info(parameter.stored).dtype;
    if (now != was) {
      notes_.push_back(c10::str(
          "the tuned model is stored as ", now, " and the source as ", was,
          ": their difference holds that rounding, too"));
      return;
    }
  }
}

void SourceUpdate::note_what_is_not_a_parameter(const model::Architecture& source) {
  const auto names = model::spellings(source);
  std::set<std::string> tensors;
  for (const auto& parameter : source.parameters) {
    tensors.insert(parameter.tensor);
  }
  const auto check = [&](const std::string& name) {
    const auto found = names.find(name);
    if (found == names.end() || !tensors.contains(found->second)) {
      notes_.push_back(c10::str(
          "the adapter changes ", name,
          ", which the source ties to another tensor or does not have: that part is not carried"));
    }
  };
  for (const auto& [module, factors] : adapter_->low_rank) {
    check(module + ".weight");
  }
  for (const auto& [name, value] : adapter_->saved) {
    check(name);
  }
}

std::string SourceUpdate::fingerprint() const {
  return checkpoint::fingerprint(
      tuned_ != nullptr ? *tuned_ : checkpoint::Checkpoint::open(path_, kAdapterWeights));
}

at::Tensor SourceUpdate::base_of(const model::Parameter& parameter) const {
  const auto tensor = base_->tensor(parameter.stored);
  return parameter.fused() ? tensor.narrow(0, parameter.row, parameter.shape[0]) : tensor;
}

at::Tensor SourceUpdate::tuned_of(const model::Parameter& parameter) const {
  if (adapter_ == nullptr && !parameter.fused()) {  // without rows for tokens that were added
    const auto whole = tuned_->tensor(stored_.at(parameter.tensor));
    return whole.dim() == 0 ? whole : whole.narrow(0, 0, base_of(parameter).size(0));
  }
  const auto tensor = adapter_ != nullptr ? adapted_->weights()[parameter.tensor]
                                          : tuned_->tensor(stored_.at(parameter.tensor));
  return parameter.fused() ? tensor.narrow(0, parameter.row, parameter.shape[0]) : tensor;
}

SourceUpdate::Sample SourceUpdate::sample(const model::Parameter& parameter) const {
  constexpr int64_t kRows = 32;
  const auto base = base_of(parameter);
  const auto count = std::min(kRows, base.size(0));
  const auto rows = at::arange(count) * base.size(0) / count;
  const auto chosen = [&](const at::Tensor& tensor) {
    return tensor.index_select(0, rows.to(at::kLong));
  };
  const auto some = chosen(base);
  auto factors = find_low_rank(parameter);
  if (factors) {
    factors->up = chosen(factors->up);
  }
  return {
      .base = some.to(at::kFloat),
      .delta = factors ? factors->product().to(at::kFloat)
                       : difference(chosen(tuned_of(parameter)), some)};
}

bool SourceUpdate::changes(const model::Parameter& parameter) const {
  auto known = changed_.find(parameter.name);
  if (known == changed_.end()) {
    known = changed_.emplace(parameter.name, compare(parameter)).first;
  }
  return known->second;
}

bool SourceUpdate::compare(const model::Parameter& parameter) const {
  if (adapter_ != nullptr) {
    return find_low_rank(parameter).has_value() || find_delta(parameter).defined();
  }
  const auto found = stored_.find(parameter.tensor);
  if (found == stored_.end()) {
    return false;
  }
  const auto now = tuned_of(parameter);
  const auto was = base_of(parameter);
  const bool same = now.scalar_type() == was.scalar_type()
                        ? at::equal(now, was)
                        : at::equal(now.to(at::kDouble), was.to(at::kDouble));
  require(
      same || model::all_finite(now), found->second, " of the tuned model ", path_.string(),
      " holds NaN or infinity");
  tuned_->forget(found->second);
  base_->forget(parameter.stored);
  return !same;
}

std::optional<update::LowRank> SourceUpdate::find_low_rank(
    const model::Parameter& parameter) const {
  const auto* factors = adapter_ == nullptr || parameter.role != model::Role::kWeight
                            ? nullptr
                            : adapted_->weights().find_low_rank(module_of(parameter.tensor));
  if (factors == nullptr || factors->scale == 0 ||
      factors->up.count_nonzero().item<int64_t>() == 0 ||
      factors->down.count_nonzero().item<int64_t>() == 0) {
    return std::nullopt;  // none, or zero
  }
  auto result = *factors;
  if (parameter.fused()) {
    result.up = result.up.narrow(0, parameter.row, parameter.shape[0]);
  }
  return result;
}

at::Tensor SourceUpdate::find_delta(const model::Parameter& parameter, c10::Device device) const {
  const auto there = [&](const at::Tensor& tensor) {
    return device.is_cpu() ? tensor : bring(tensor, device);
  };
  at::Tensor delta;
  if (adapter_ != nullptr) {
    if (const auto factors = find_low_rank(parameter)) {
      return there(factors->product());
    }
    if (adapted_->weights().is_replaced(parameter.tensor)) {
      delta = difference(there(tuned_of(parameter)), there(base_of(parameter)));
      adapted_->weights().drop_block(parameter.block);  // merged weights are as large as the model
    }
  } else if (changes(parameter)) {
    delta = difference(there(tuned_of(parameter)), there(base_of(parameter)));
    tuned_->forget(stored_.at(parameter.tensor));
    base_->forget(parameter.stored);
  }
  if (!delta.defined()) {
    return delta;
  }
  require(
      delta.isfinite().all().item<bool>(), "the update of ", parameter.name,
      " holds NaN or infinity");
  const auto norm = update::norm_of(delta);
  norms_[{parameter.name, device.type()}] = norm;
  return norm == 0 ? at::Tensor() : delta;
}

double SourceUpdate::delta_norm(const model::Parameter& parameter, c10::Device device) const {
  if (const auto factors = find_low_rank(parameter)) {
    return factors->norm();
  }
  const auto key = std::pair(parameter.name, device.type());
  if (!norms_.contains(key)) {
    find_delta(parameter, device);
  }
  return norms_[key];
}

std::map<std::string, at::Tensor> whole_deltas(
    const SourceUpdate& update,
    const model::Architecture& architecture,
    std::optional<int64_t> block) {
  const auto shapes = model::tensor_shapes(architecture);
  std::map<std::string, at::Tensor> deltas;
  for (const auto& parameter : architecture.parameters) {
    const bool wanted = !block || parameter.block == *block;
    const auto delta = wanted ? update.find_delta(parameter) : at::Tensor();
    if (!delta.defined()) {
      continue;
    }
    auto& whole = deltas[parameter.tensor];
    if (!parameter.fused()) {
      whole = delta;
      continue;
    }
    if (!whole.defined()) {
      whole = at::zeros(shapes.at(parameter.tensor));
    }
    whole.narrow(0, parameter.row, parameter.shape[0]).copy_(delta);
  }
  return deltas;
}

std::map<std::string, at::Tensor> with_deltas(
    const model::Model& model, const std::map<std::string, at::Tensor>& deltas, double alpha) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& parameter : model.architecture().parameters) {
    const auto delta = deltas.find(parameter.tensor);
    if (delta != deltas.end() && !tensors.contains(parameter.tensor)) {
      const auto base = model.checkpoint().tensor(parameter.stored).to(at::kFloat);
      tensors[parameter.tensor] = at::add(base, delta->second, alpha);
    }
  }
  return tensors;
}

void require_change(const SourceUpdate& update, const model::Architecture& architecture) {
  const bool changed = std::any_of(
      architecture.parameters.begin(), architecture.parameters.end(),
      [&](const auto& parameter) { return update.changes(parameter); });
  require(
      changed, "the tuned model ", update.path().string(),
      " changes nothing: every tensor equals the source's",
      update.beside().empty() ? ""
                              : c10::str(
                                    ", and the source lacks ", joined(update.beside(), kShown),
                                    "; if that is a head, --head carry carries it from a source "
                                    "that has one of the same "
                                    "shape onto a target that has one"));
}

}  // namespace theseus::transport
