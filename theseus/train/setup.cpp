#include "theseus/train/setup.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"
#include "theseus/output/output_dtype.h"
#include "theseus/output/sentence_head.h"
#include "theseus/output/write_adapter.h"
#include "theseus/train/lora.h"
#include "theseus/train/start.h"
#include "theseus/update/norm.h"

namespace theseus::train {
namespace {

namespace fs = std::filesystem;

// PEFT's word for what an adapter is for.
std::string task_of(const model::Architecture& architecture, const Head& head) {
  const auto& generation = architecture.generation;
  if (generation.possible) {
    return generation.grows == "decoder_input_ids" ? "SEQ_2_SEQ_LM" : "CAUSAL_LM";
  }
  return head.added() ? architecture.head_task : "";
}

// |s B A|^2 = s^2 tr((B^T B) (A A^T)), which takes no matrix larger than a factor.
double product_squared(const update::LowRank& factors) {
  const auto up = factors.up.detach().to(at::kDouble), down = factors.down.detach().to(at::kDouble);
  const auto trace = (at::mm(up.t(), up) * at::mm(down, down.t())).sum().item<double>();
  return factors.scale * factors.scale * std::max(trace, 0.0);
}

}  // namespace

Setup::Setup(const FinetuneOptions& options, model::Model& opened, const data::Examples& examples)
    : model(opened),
      head(choose_head(options.head, model, examples)),
      choice(choose_trained(
          model.architecture(),
          static_cast<bool>(examples.image),
          head,
          {.freeze = options.freeze, .adapt = options.lora_on, .low_rank = options.rank > 0})),
      reader(model, options.longest),
      trainable(model),
      low_rank_(options.rank > 0) {
  require(
      !low_rank_ || head.replaced == 0 ||
          head.replaced == static_cast<int64_t>(head.classes.size()),
      "--head new: the model's own head has ", head.replaced, " classes and the data ",
      head.classes.size(), "; an adapter cannot change that: train without --lora");
}

void Setup::begin(const FinetuneOptions& options) {
  Start start;
  if (!options.start_from.empty()) {
    start = read_start(options.start_from, options.start_alpha, options.rank, model);
  }
  for (const auto& [tensor, value] : start.tensors) {
    model.weights().replace(tensor, value);
  }
  for (const auto& tensor : choice.tensors) {
    if (const auto found = start.tensors.find(tensor); found != start.tensors.end()) {
      trainable.train(tensor, found->second);
      start.tensors.erase(found);
    } else {
      trainable.train(tensor);
    }
  }
  if (head.added()) {
    start.tensors.erase(head.module + ".weight");
    start.tensors.erase(head.module + ".bias");
    begin_head(head, options.seed, trainable);
    for (const char* part : {".weight", ".bias"}) {
      head_begun[head.module + part] =
          trainable.leaves().at(head.module + part).detach().cpu().clone();
    }
  }
  fixed = std::move(start.tensors);
  const auto alpha =
      options.lora_alpha > 0 ? options.lora_alpha : 2 * static_cast<double>(options.rank);
  begin_lora(choice.modules, options.rank, alpha, options.seed, start.low_rank, trainable);
}

int64_t Setup::trained() const {
  int64_t count = 0;
  for (const auto& [name, leaf] : trainable.leaves()) {
    count += leaf.numel();
  }
  return count;
}

std::optional<WrittenTuned> Setup::write(
    const FinetuneOptions& options, const fs::path& directory) const {
  if (low_rank_) {
    write_factors(options.model, directory);
    return std::nullopt;
  }
  auto values = fixed;
  values.insert(trainable.leaves().begin(), trainable.leaves().end());
  return write_tuned(model, values, head, options.output_dtype, directory);
}

output::Addition Setup::learnt(const std::optional<WrittenTuned>& written) const {
  const c10::NoGradGuard no_gradients;
  const auto dtype = written ? written->dtype : at::kFloat;
  auto all = written ? written->learnt : learnt_by_factors();
  for (const auto& [name, before] : head_begun) {
    all.add(addition_of(before.to(dtype), trainable.leaves().at(name).detach().cpu(), dtype));
  }
  return all;
}

// As an adapter stores it, beside the weights that it is for.
output::Addition Setup::learnt_by_factors() const {
  output::Addition all;
  for (const auto& parameter : model.architecture().parameters) {
    const auto& tensor = parameter.tensor;
    const auto end = tensor.rfind(".weight");
    const auto module = tensor.substr(0, end);
    if (end != std::string::npos && trainable.leaves().contains(module + ".lora_B.weight")) {
      const auto norm_squared = product_squared(trainable.low_rank(module));
      const auto base = update::norm_of(model.checkpoint().tensor(parameter.stored));
      const output::Addition one{
          .norm_squared = norm_squared,
          .arrived_squared = norm_squared,
          .base_squared = base * base};
      if (output::is_seen(one)) {
        return one;
      }
      all.add(one);
    }
  }
  return all;
}

void Setup::write_factors(const fs::path& base, const fs::path& directory) const {
  const auto& architecture = model.architecture();
  const auto named = [&](const std::string& name) {
    return name_with_head(architecture, head, name);
  };
  output::AdapterOptions about{
      .task = task_of(architecture, head), .base_model = fs::weakly_canonical(base).string()};
  for (const auto& layer : architecture.linears) {
    about.modules.push_back(named(layer.module));
  }
  std::map<std::string, update::LowRank> modules;
  for (const auto& module : choice.modules) {
    const auto factors = trainable.low_rank(module);
    modules[named(module)] = {
        .up = factors.up.detach().cpu(),
        .down = factors.down.detach().cpu(),
        .scale = factors.scale};
  }
  const auto leaf = [&](const char* part) {
    return trainable.leaves().at(head.module + part).detach().cpu();
  };
  if (head.beside) {
    output::write_sentence_head(
        {.weight = leaf(".weight"), .bias = leaf(".bias"), .classes = head.classes}, directory);
  } else if (head.added()) {
    for (const char* part : {".weight", ".bias"}) {
      about.saved[head.module + part] = leaf(part);
    }
  }
  output::write_adapter(directory, modules, about);
}

}  // namespace theseus::train
