#include "tests/support/unique.h"

#include <vector>

#include <ATen/ATen.h>

namespace theseus::tests {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor orthonormal(const at::Tensor& columns) {
  const auto [u, sizes, v] = at::linalg_svd(columns, /*full_matrices=*/false);
  const auto rank = sizes.gt(sizes[0] * 1e-9).sum().item<int64_t>();
  return u.narrow(1, 0, rank);
}

// What the outputs of a LayerNorm span: [d, d - 1] centred, [d, d] with its shift as last column.
at::Tensor span_of_norm(const Tensors& target, const std::string& norm, bool centred) {
  const auto gain = target.at(norm + ".weight").to(at::kDouble);
  const auto ones = at::ones({1, gain.size(0)}, at::kDouble);
  const auto others = std::get<2>(at::linalg_svd(ones)).narrow(0, 1, gain.size(0) - 1).t();
  const auto spread = gain.unsqueeze(1) * others;
  return centred ? spread
                 : at::cat({spread, target.at(norm + ".bias").to(at::kDouble).unsqueeze(1)}, 1);
}

// What a layer makes of that span: its bias goes with the last column.
at::Tensor span_of_outputs(
    const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& span, bool centred) {
  const auto image = weight.matmul(span);
  if (centred) {
    return orthonormal(image);
  }
  const auto last = span.size(1) - 1;
  return orthonormal(
      at::cat({image.narrow(1, 0, last), image.narrow(1, last, 1) + bias.unsqueeze(1)}, 1));
}

at::Tensor onto(const at::Tensor& basis, const at::Tensor& value) {
  return basis.matmul(basis.t().matmul(value));
}

std::string before(const std::string& name, const char* word) {
  return name.substr(0, name.find(word));
}

bool holds(const std::string& name, const char* word) {
  return name.find(word) != std::string::npos;
}

}  // namespace

std::optional<at::Tensor> unique_part(
    const std::string& name,
    const at::Tensor& update,
    const Tensors& target,
    bool centred,
    bool widening) {
  auto x = update.to(at::kDouble);
  const auto module = name.substr(0, name.rfind('.'));
  const bool up = holds(name, ".mlp.c_fc.");
  const bool qkv = centred && holds(name, ".attn.in_proj");
  const bool norm = centred && (holds(name, ".ln_") || name == "visual.proj");
  if (!up && !qkv && !norm) {
    return x;
  }
  if (widening) {
    return std::nullopt;
  }
  if (norm) {
    const auto from = name == "visual.proj" ? "visual.ln_post" : module;
    return onto(orthonormal(span_of_norm(target, from, true)), x);
  }
  const auto value = [&](const std::string& tensor) { return target.at(tensor).to(at::kDouble); };
  const auto inputs = up ? before(name, ".mlp") + ".ln_2" : before(name, ".attn") + ".ln_1";
  const auto span = span_of_norm(target, inputs, centred);
  if (up) {
    x = onto(span_of_outputs(value(module + ".weight"), value(module + ".bias"), span, centred), x);
  } else {
    const auto weight = value(before(name, ".attn") + ".attn.in_proj_weight");
    const auto weights = weight.chunk(3, 0);
    auto parts = x.chunk(3, 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i] = onto(span_of_outputs(weights[i], {}, span, true), parts[i]);
    }
    x = at::cat(parts, 0);
  }
  if (x.dim() == 2 && centred) {
    const auto basis = orthonormal(span);
    x = x.matmul(basis).matmul(basis.t());
  }
  return x;
}

}  // namespace theseus::tests
