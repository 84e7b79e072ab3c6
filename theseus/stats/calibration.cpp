#include "theseus/stats/calibration.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/layers.h"

namespace theseus::stats {
namespace {

const std::map<std::string, std::string> kSpans = {
    {"spans", "input_ids"}, {"decoder_spans", "decoder_input_ids"}};

// OpenCLIP says `text` where others say `input_ids`.
std::string name_for(const model::Architecture& architecture, const std::string& name) {
  return name == "input_ids" && !model::takes(architecture.inputs, name) &&
                 model::takes(architecture.inputs, "text")
             ? "text"
             : name;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    text.append(" ").append(name);
  }
  return text;
}

// Fisher and Yates with a generator that every standard library implements alike.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random() % i]);
  }
  return order;
}

int64_t most_sequences(const model::Batch& inputs) {
  int64_t most = 0;
  for (const auto& [name, tensor] : inputs) {
    require(
        tensor.dim() >= 2 && tensor.size(0) > 0, "the tensor ", name,
        " has no sequences: its shape is ", tensor.sizes());
    most = std::max(most, tensor.size(0));
  }
  return most;
}

void check_counts(const model::Batch& source, const model::Batch& target) {
  for (const auto& [name, tensor] : source) {
    const auto other = target.find(name);
    require(
        other == target.end() || other->second.size(0) == tensor.size(0), "the tensor ", name,
        " has ", tensor.size(0), " sequences for the source and ",
        other == target.end() ? 0 : other->second.size(0), " for the target; they must pair");
  }
  for (const auto* inputs : {&source, &target}) {
    const auto ids = inputs->find("input_ids");
    for (const char* name : {"attention_mask", "token_type_ids", "decoder_input_ids"}) {
      const auto found = inputs->find(name);
      require(
          found == inputs->end() ||
              (ids != inputs->end() && ids->second.size(0) == found->second.size(0)),
          "the tensor ", name, " has another number of sequences than input_ids");
    }
  }
}

// Now, and not after hours.
void require_finite(const checkpoint::Checkpoint& file, const std::string& name) {
  const auto tensor = file.tensor(name);
  if (!tensor.is_floating_point() || tensor.dim() == 0) {
    return;
  }
  constexpr int64_t kAtATime = 64;
  for (int64_t first = 0; first < tensor.size(0); first += kAtATime) {
    const auto some = tensor.narrow(0, first, std::min(kAtATime, tensor.size(0) - first));
    const bool finite = model::all_finite(some);
    for (int64_t i = 0; !finite && i < some.size(0); ++i) {
      require(model::all_finite(some[i]), name, " holds NaN or infinity in sequence ", first + i);
    }
  }
  file.forget(name);
}

// An input's shape, without regard to what OpenCLIP calls it.
c10::IntArrayRef shape_of(const model::Batch& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  const auto text = name == "input_ids" ? inputs.find("text") : inputs.end();
  return found != inputs.end()  ? found->second.sizes()
         : text != inputs.end() ? text->second.sizes()
                                : c10::IntArrayRef();
}

}  // namespace

int64_t Sampling::wanted() const {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  return batches > 0 ? (batches > kMost / batch_size ? kMost : batches * batch_size)
         : draw > 0  ? draw
                     : most;
}

std::string Sampling::fewer(int64_t there, const char* what) const {
  if ((batches == 0 && draw == 0) || wanted() <= there) {
    return {};
  }
  const auto asked =
      batches > 0 ? c10::str("--batches ", batches, " of ", batch_size) : c10::str("--draw ", draw);
  return c10::str(asked, ": there are only ", there, " ", what, ", and all of them were used");
}

at::Tensor find_spans(
    const std::map<std::string, at::Tensor>& spans,
    const model::Batch& inputs,
    const std::string& tower) {
  const bool answers = tower == "decoder" && inputs.contains("decoder_input_ids");
  const auto found = spans.find(answers ? "decoder_input_ids" : "input_ids");
  return found == spans.end() ? at::Tensor() : found->second;
}

Calibration Calibration::open(
    const std::filesystem::path& path,
    const model::Architecture& source,
    const model::Architecture& target,
    const Sampling& sampling) {
  return with_context("reading the examples " + path.string(), [&] {
    require(sampling.batch_size > 0, "a batch size of ", sampling.batch_size, " is not positive");
    Calibration result;
    result.path_ = path;
    result.file_ =
        std::make_shared<const checkpoint::Checkpoint>(checkpoint::Checkpoint::open(path));
    result.take(*result.file_, source, target);
    result.batch_size_ = sampling.batch_size;
    result.sequences_ = most_sequences(result.source_);
    const auto most_target = most_sequences(result.target_);
    require(
        result.sequences_ == most_target, "it holds ", result.sequences_,
        " sequences for the source and ", most_target, " for the target; they must pair");
    check_counts(result.source_, result.target_);
    result.check_spans();
    result.available_ = result.sequences_;
    if (const auto wanted = sampling.wanted(); wanted > 0 && wanted < result.available_) {
      result.draw(sampling);
    }
    result.batches_ = (result.sequences_ + sampling.batch_size - 1) / sampling.batch_size;
    result.note_counts(sampling);
    return result;
  });
}

void Calibration::take(
    const checkpoint::Checkpoint& file,
    const model::Architecture& source,
    const model::Architecture& target) {
  bool labels = false;
  for (const auto& info : file.tensors()) {
    const bool own = info.name.starts_with("source/") || info.name.starts_with("target/");
    const auto bare = own ? info.name.substr(7) : info.name;
    if (take_answer(file, info.name)) {
      labels = true;
      continue;
    }
    if (const auto spans = kSpans.find(bare); spans != kSpans.end()) {
      require(own, "tensor ", info.name, " must be source/", bare, " or target/", bare);
      auto& side = info.name.starts_with("source/") ? source_spans_ : target_spans_;
      side[spans->second] = file.tensor(info.name);
      continue;
    }
    require_finite(file, info.name);
    const auto give = [&](const char* side, const auto& architecture, model::Batch& inputs) {
      const auto name = name_for(architecture, bare);
      const bool meant =
          (!own || info.name.starts_with(side)) && model::takes(architecture.inputs, name);
      const bool added = !meant || inputs.emplace(name, file.tensor(info.name)).second;
      require(added, "both ", name, " and ", info.name, " are there; keep one of them");
      return meant;
    };
    const bool to_source = give("source/", source, source_);
    const bool used = give("target/", target, target_) || to_source;
    require(
        used, "tensor ", info.name,
        " is not an input of these models; they take:", listed(source.inputs));
    shares_ids_ = shares_ids_ || (!own && (bare == "input_ids" || bare == "text"));
  }
  for (const auto& [inputs, side, architecture] :
       {std::tuple(&source_, "source", &source), std::tuple(&target_, "target", &target)}) {
    require(
        !inputs->empty(), labels ? "beside labels " : "", "it holds no input for the ", side,
        " model, which takes:", listed(architecture->inputs), " (or ", side,
        "/NAME for this model alone)");
  }
}

void Calibration::check_spans() const {
  require(
      source_spans_.size() == target_spans_.size(), "it holds spans for the ",
      source_spans_.empty() ? "target" : "source", " only; both models' tokens need them");
  const auto check = [](const auto& side, const auto& spans, const model::Batch& inputs) {
    for (const auto& [name, tensor] : spans) {
      auto expected = shape_of(inputs, name).vec();
      expected.push_back(2);
      require(
          tensor.sizes() == expected && tensor.scalar_type() == at::kLong, side, "'s spans of ",
          name, " are ", tensor.scalar_type(), " ", tensor.sizes(), ", expected int64 ",
          c10::IntArrayRef(expected), ": from and to for each id");
    }
  };
  check("source", source_spans_, source_);
  check("target", target_spans_, target_);
}

PairedBatch Calibration::pair(int64_t batch, int64_t stage, bool pinned) const {
  return {
      .source = cut(source_, batch, stage == 0, pinned),
      .target = cut(target_, batch, stage == 0, pinned),
      .source_spans = cut(source_spans_, batch),
      .target_spans = cut(target_spans_, batch)};
}

void Calibration::forget_images() const {
  for (const auto& info : file_->tensors()) {
    if (file_->tensor(info.name).is_floating_point()) {
      file_->forget(info.name);
    }
  }
}

void Calibration::draw(const Sampling& sampling) {
  sequences_ = sampling.wanted();
  for (const auto* inputs : {&source_, &target_}) {
    for (const auto& [name, tensor] : *inputs) {
      auto order = shuffled(tensor.size(0), sampling.seed);
      order.resize(static_cast<size_t>(std::min(tensor.size(0), sequences_)));
      order_.try_emplace(tensor.size(0), std::move(order));
    }
  }
}

void Calibration::note_counts(const Sampling& sampling) {
  if (const auto fewer = sampling.fewer(available_, "sequences"); !fewer.empty()) {
    notes_.push_back(fewer);
  }
  for (const auto& [name, tensor] : source_) {
    const auto used = std::min(tensor.size(0), sequences_);
    if (used < sequences_) {
      notes_.push_back(c10::str(
          "of ", name, " there are only ", used, " sequences where ", sequences_,
          " of others are used: what reads ", name, " is told apart by these ", used));
    }
  }
}

Calibration Calibration::part(const Place& first, const Place& last) const {
  auto result = *this;
  result.order_.clear();
  result.sequences_ = 0;
  for (auto* inputs :
       {&result.source_, &result.target_, &result.source_spans_, &result.target_spans_,
        &result.source_answers_, &result.target_answers_}) {
    for (auto& [name, tensor] : *inputs) {
      const auto size = tensor.size(0);
      const auto used = std::min(size, sequences_);
      const auto begin = first(used), count = last(used) - begin;
      if (const auto order = order_.find(size); order != order_.end()) {
        const auto from = order->second.begin() + begin;
        result.order_[size] = {from, from + count};
      } else {
        tensor = tensor.narrow(0, begin, count);
      }
      result.sequences_ = std::max(result.sequences_, count);
    }
  }
  result.batches_ = (result.sequences_ + batch_size_ - 1) / batch_size_;
  return result;
}

Calibration Calibration::in_batches_of(int64_t sequences) const {
  auto result = *this;
  result.batch_size_ = sequences;
  result.batches_ = (sequences_ + sequences - 1) / sequences;
  return result;
}

std::pair<Calibration, Calibration> Calibration::split() const {
  const auto middle = [this](int64_t count) {
    const auto batches = (count + batch_size_ - 1) / batch_size_;
    require(
        count > 1, "one sequence cannot be split into those to align on and those held out; ",
        "give more examples");
    return batches == 1 ? count - std::max<int64_t>(count / 4, 1)
                        : (batches - std::max<int64_t>(batches / 4, 1)) * batch_size_;
  };
  const auto begin = [](int64_t) { return int64_t{0}; };
  const auto end = [](int64_t count) { return count; };
  return {part(begin, middle), part(middle, end)};
}

std::optional<int64_t> Calibration::unpadded() const {
  const auto mask = target_.find("attention_mask");
  if (mask == target_.end()) {
    return std::nullopt;
  }
  auto kept = mask->second.sum(1);  // [n]
  if (const auto order = order_.find(kept.size(0)); order != order_.end()) {
    kept = kept.index_select(0, at::tensor(order->second, at::kLong));
  }
  return kept.sum().item<int64_t>();
}

model::Batch Calibration::cut(
    const model::Batch& whole, int64_t batch, bool images, bool pinned) const {
  model::Batch result;
  const auto first = batch * batch_size_;
  for (const auto& [name, tensor] : whole) {
    const auto order = order_.find(tensor.size(0));
    const auto all =
        order == order_.end() ? tensor.size(0) : static_cast<int64_t>(order->second.size());
    const auto count = std::min(batch_size_, all - first);
    if (count <= 0) {
      continue;
    }
    if (!images && tensor.is_floating_point()) {
      result[name] = tensor.narrow(0, 0, 0);
    } else if (order != order_.end()) {
      auto index = at::empty({count}, at::kLong);
      std::copy_n(order->second.begin() + first, count, index.data_ptr<int64_t>());
      auto shape = tensor.sizes().vec();
      shape[0] = count;
      result[name] = at::empty(shape, tensor.options().pinned_memory(pinned));
      at::index_select_out(result[name], tensor, 0, index);
    } else {
      const auto part = tensor.narrow(0, first, count);
      result[name] = pinned ? part.pin_memory() : part;
    }
  }
  return result;
}

}  // namespace theseus::stats
