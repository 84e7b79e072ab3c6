#include "theseus/model/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <ATen/ATen.h>
#include <torch/version.h>

#include "theseus/base/error.h"

namespace theseus::model {
namespace {

at::Tensor gelu(const at::Tensor& x) {
  return at::gelu(x);
}
at::Tensor gelu_tanh(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}
at::Tensor quick_gelu(const at::Tensor& x) {
  return x * at::sigmoid(x * 1.702);
}
at::Tensor relu(const at::Tensor& x) {
  return at::relu(x);
}
at::Tensor silu(const at::Tensor& x) {
  return at::silu(x);
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)

// libtorch's fused kernel: never holds the [tq, tk] scores where the device allows it. Every query sees a
// key.
at::Tensor attend_rows(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Attention& attention) {
  const auto groups = k.size(1);
  const auto repeats = q.size(1) / groups;
  const auto repeated = [&](const at::Tensor& x) {
    return repeats == 1 ? x : x.repeat_interleave(repeats, 1);
  };
  std::optional<at::Tensor> mask;
  if (attention.bias.defined()) {
    const auto bias = attention.bias.to(q.scalar_type());
    mask = attention.allowed.defined()
               ? bias.masked_fill(
                     attention.allowed.logical_not(), -std::numeric_limits<double>::infinity())
               : bias;
  } else if (attention.allowed.defined()) {
    mask = attention.allowed;
  }
  return at::scaled_dot_product_attention(
      q, repeated(k), repeated(v), mask, 0.0, false, attention.scale);
}

#else

// One head at a time: its scores stay in the processor's cache, and its rows are read where the
// linear layer put them. k and v are not repeated for grouped queries. Every query sees a key.
at::Tensor attend_rows(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Attention& attention) {
  const auto shared = static_cast<size_t>(q.size(1) / k.size(1));
  // Not select(), whose way back makes a tensor of all heads for each of them.
  // Queries are scaled, not scores: there are fewer of them.
  const auto queries = (attention.scale == 1 ? q : q * attention.scale).unbind(1);
  const auto keys = k.unbind(1), values = v.unbind(1);
  const auto of_head = [](const std::vector<at::Tensor>& x, size_t head) {
    return x[x.size() == 1 ? 0 : head];
  };
  // What is left of a refused key is 0.
  const double lowest = q.scalar_type() == at::kHalf ? -65504 : -1e30;
  std::vector<at::Tensor> biases, refused;
  if (attention.bias.defined()) {
    biases = attention.bias.unbind(1);
  }
  if (attention.allowed.defined()) {
    refused = attention.allowed.logical_not().unbind(1);
  }
  std::vector<at::Tensor> heads;
  for (size_t head = 0; head < queries.size(); ++head) {
    auto scores = at::bmm(queries[head], keys[head / shared].transpose(1, 2));  // [n, tq, tk]
    if (!biases.empty()) {
      scores = scores + of_head(biases, head);
    }
    if (!refused.empty()) {
      scores.masked_fill_(of_head(refused, head), lowest);
    }
    heads.push_back(at::bmm(at::softmax(scores, -1), values[head / shared]));
  }
  return at::stack(heads, 2).transpose(1, 2);  // so that merging heads is free
}

#endif

}  // namespace

Activation activation(const std::string& name, const std::string& where) {
  static const std::map<std::string, Activation> known = {
      {"gelu", gelu}, {"gelu_new", gelu_tanh},    {"gelu_pytorch_tanh", gelu_tanh},
      {"relu", relu}, {"quick_gelu", quick_gelu}, {"silu", silu},
      {"swish", silu}};
  const auto found = known.find(name);
  if (found == known.end()) {
    std::string words;
    for (const auto& [word, function] : known) {
      words.append(" ").append(word);
    }
    throw InputError(
        c10::str(where, ": activation '", name, "' is not implemented; known:", words));
  }
  return found->second;
}

bool all_finite(const at::Tensor& tensor) {
  if (tensor.numel() == 0) {
    return true;
  }
  if (tensor.scalar_type() == at::kHalf) {  // not every libtorch has this minimum on the CPU
    return at::isfinite(tensor).all().item<bool>();
  }
  // The extremes are NaN or infinite when any element is.
  const auto [least, most] = at::aminmax(tensor);
  return std::isfinite(least.item<double>()) && std::isfinite(most.item<double>());
}

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor merge_heads(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

at::Tensor attend(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Attention& attention) {
  if (!attention.allowed.defined()) {
    return attend_rows(q, k, v, attention);
  }
  // The softmax of nothing is no number, or anybody's, and so are its gradients. A query that may see no
  // key looks at all of them, and what it finds is not used.
  const auto blind = attention.allowed.any(-1, /*keepdim=*/true).logical_not();
  auto seeing = attention;
  seeing.allowed = attention.allowed.logical_or(blind);
  return attend_rows(q, k, v, seeing).masked_fill(blind, 0);
}

at::Tensor causal_mask(int64_t tq, int64_t tk, c10::Device device) {
  const auto options = at::TensorOptions().dtype(at::kBool).device(device);
  return at::ones({tq, tk}, options).tril(tk - tq).view({1, 1, tq, tk});
}

at::Tensor up_to(const at::Tensor& last, int64_t tokens) {
  return at::arange(tokens, last.options()).unsqueeze(0) <= last.unsqueeze(1);
}

at::Tensor key_mask(const at::Tensor& attention_mask) {
  return attention_mask.defined() ? attention_mask.to(at::kBool).unsqueeze(1).unsqueeze(1)
                                  : at::Tensor();
}

at::Tensor both(const at::Tensor& mask, const at::Tensor& other) {
  if (!mask.defined() || !other.defined()) {
    return mask.defined() ? mask : other;
  }
  return mask.logical_and(other);
}

at::Tensor mean_of_tokens(const at::Tensor& rows, const at::Tensor& kept) {
  const auto wide = rows.to(rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  if (!kept.defined()) {
    return wide.mean(1).to(rows.scalar_type());
  }
  const auto share = kept.to(wide.device(), wide.scalar_type()).unsqueeze(2);  // [n, t, 1]
  return ((wide * share).sum(1) / share.sum(1).clamp_min(1)).to(rows.scalar_type());
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const auto wide = x.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const auto scale = at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + eps);
  return gain * (wide * scale).to(x.scalar_type());
}

at::Tensor normalised(const at::Tensor& x) {
  return x / x.norm(2, -1, /*keepdim=*/true);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& angles) {
  const auto cos = angles.cos().to(x.scalar_type());
  const auto sin = angles.sin().to(x.scalar_type());
  const auto half = x.size(-1) / 2;
  const auto first = x.narrow(-1, 0, half);
  const auto second = x.narrow(-1, half, half);
  return at::cat({first * cos - second * sin, second * cos + first * sin}, -1);
}

at::Tensor patches(const at::Tensor& images, int64_t patch) {
  const auto n = images.size(0), c = images.size(1), grid = images.size(2) / patch;
  // As a convolution does, what is left at the right and at the bottom is not looked at.
  return images.narrow(2, 0, grid * patch)
      .narrow(3, 0, grid * patch)
      .reshape({n, c, grid, patch, grid, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({n, grid * grid, c * patch * patch});
}

}  // namespace theseus::model
