#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

// Mathematics of transformer layers without weights of their own. Letters: n sequences, t tokens
// (tq of queries, tk of keys), d width, h heads, g key and value heads, e head width.
namespace theseus::model {

// An elementwise function by the name configs use.
using Activation = at::Tensor (*)(const at::Tensor& x);
// gelu, gelu_new (also gelu_pytorch_tanh), quick_gelu, relu, silu (also swish). `where` begins the
// InputError for another name, which lists these.
Activation activation(const std::string& name, const std::string& where);

// Whether no element is NaN or infinite. One pass without a temporary; waits for the device.
bool all_finite(const at::Tensor& tensor);

// [n, t, h * e] -> [n, h, t, e], and back.
at::Tensor split_heads(const at::Tensor& x, int64_t heads);
at::Tensor merge_heads(const at::Tensor& x);

// softmax(scale q k^T + bias) v over the keys that `allowed` lets through. A query that may see no
// key gets zero. q [n, h, tq, e], k and v [n, g, tk, e] with g dividing h (grouped queries).
struct Attention {
  double scale = 1;
  at::Tensor allowed;  // bool, broadcastable to [n, 1, tq, tk]; undefined: everything
  at::Tensor bias;     // [1, h, tq, tk]; undefined: none
};
at::Tensor attend(
    const at::Tensor& q,
    const at::Tensor& k,
    const at::Tensor& v,
    const Attention& attention);  // [n, h, tq, e]

// Query i, which stands at position tk - tq + i, may see keys up to its own position.
at::Tensor causal_mask(int64_t tq, int64_t tk, c10::Device device);  // bool [1, 1, tq, tk]
// Tokens up to and with the one at `last` [n].
at::Tensor up_to(const at::Tensor& last, int64_t tokens);  // bool [n, tokens]
// attention_mask [n, tk] of 0 and 1 as keys to be seen; undefined stays undefined.
at::Tensor key_mask(const at::Tensor& attention_mask);  // bool [n, 1, 1, tk]
// Both, where either may be undefined.
at::Tensor both(const at::Tensor& mask, const at::Tensor& other);

// The mean over the tokens of rows [n, t, d] that `kept` [n, t] does not leave out; undefined: over all.
at::Tensor mean_of_tokens(const at::Tensor& rows, const at::Tensor& kept);  // [n, d]

// x / sqrt(mean(x^2) + eps) * gain, in float32 or wider whatever x is.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

// x / |x| along the last axis.
at::Tensor normalised(const at::Tensor& x);

// Rotary position embedding in the half-split layout. `angles` [n or 1, 1, t, e / 2].
at::Tensor rotate(const at::Tensor& x, const at::Tensor& angles);  // like x [n, h, t, e]

// Non-overlapping patches of images [n, c, s, s] as rows [n, (s / p)^2, c p p].
at::Tensor patches(const at::Tensor& images, int64_t patch);

}  // namespace theseus::model
