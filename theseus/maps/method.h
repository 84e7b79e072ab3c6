#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/base/plugin.h"
#include "theseus/maps/factors.h"
#include "theseus/maps/polar.h"

namespace theseus::maps {

// What a rank-deficient problem leaves open: `complete` extends the map to a full isometry, first by
// what the prior says and then by a fixed one; `arbitrary` takes whatever isometry a singular value
// decomposition returns; `truncate` keeps the partial isometry.
enum class Rank { kComplete, kArbitrary, kTruncate };

struct Options {
  Rank rank = Rank::kComplete;
  double whiten = 0;    // p in [0, 0.5]
  double ridge = 1e-2;  // lambda of pinv-tikhonov, relative to the mean eigenvalue of the Gram
  // For those who state the problems: whether moments are centred, and whether what is added to the
  // residual stream has the stream's own map.
  bool center = false, stream = false;
};

// Everything that is known of one space. All tensors are float64 (the prior may be float32) on one device.
struct Problem {
  int64_t source_width = 0;  // ds
  int64_t target_width = 0;  // dt
  int64_t rows = 0;          // M, paired: no more directions than these are known
  // Directions that can be known at most, whatever the statistics say.
  int64_t most = std::numeric_limits<int64_t>::max();
  double noise = 1e-12;  // singular values of `cross` below this share of the largest say nothing,
  double floor = 0;      // nor do those below this
  Rounding rounding;     // of `cross`, where rows are kept
  // A space that is the image of a smaller one has its moments in that one: its rows are z Q^T with
  // Q orthonormal. Undefined: Q is the identity.
  at::Tensor source_basis;  // [ds, ks]
  at::Tensor target_basis;  // [dt, kt]
  at::Tensor cross;         // [ks, kt]  S^T R in the bases
  at::Tensor source_gram;   // [ks, ks]  S^T S, when the method needs it
  at::Tensor target_gram;   // [kt, kt]  R^T R, likewise
  // The map of a space with the same units and more rank (behind the activation function), as a matrix,
  // as factors, or undefined.
  at::Tensor prior;  // [ds, dt]
  Factors prior_factors;
  bool factored = false;  // the map is wanted as factors, where these are the smaller
  // Units come in heads that move as a whole; 0: they do not. Only `permutation` cares.
  int64_t source_heads = 0;
  int64_t target_heads = 0;
  bool rigid_heads = false;  // positions within a head have a meaning of their own (rotary)
};

// T of one space: rows of the source times T are like the target's. A matrix, or factors where the
// problem wanted them and they are smaller.
struct Map {
  at::Tensor matrix = {};    // [ds, dt] float32
  Factors factors = {};      // float32
  int64_t rank = 0;          // effective rank of the statistics
  int64_t completed = 0;     // directions that the prior or a fixed isometry filled in
  std::string route;         // how it was computed: "eigh", "svd", "assignment", ...
  bool isometry = false;     // T T^T = I, or T^T T = I
  double orthogonality = 0;  // |T T^T - I| (the smaller side) over sqrt(its size); for isometries
  double asymmetry = 0;  // |C T^T - T C^T| over |C T^T|, of the matrix C whose polar factor T is
  double condition = 0;  // largest over smallest singular value above the rank's threshold
  bool by_gradients = false;  // its statistics are of gradients, not of activations

  int64_t source_width() const {
    return factors.defined() ? factors.source_width() : matrix.size(0);
  }
  int64_t target_width() const {
    return factors.defined() ? factors.target_width() : matrix.size(1);
  }
  at::Tensor dense() const { return factors.defined() ? factors.dense() : matrix; }
  c10::Device device() const { return (factors.defined() ? factors.left : matrix).device(); }
  Map to(c10::Device device) const;
};

// Where a method's statistics come from.
struct Needs {
  bool moments = true;  // cross moments of activations
  bool source_gram = false;
  bool target_gram = false;
  // Statistics of base weights instead of activations: cross = sum over the parameters that touch the
  // space of W_s W_t^T, unfolded along the space's axis (same shapes only); Grams likewise.
  bool weight_cross = false;
  bool weight_grams = false;
  // What linear layers write is aligned by gradients of a loss there; so labels are needed.
  bool gradients = false;
};

// Options that change a method's answer; the others are refused with it on the command line.
struct Obeys {
  bool rank = false;
  bool whiten = false;
  bool ridge = false;
};

// What goes through the maps.
enum class Carries {
  kUpdate,        // the source's update
  kRandomUpdate,  // a Gaussian update with the norms of the source's
  kNoise,         // nothing: the target gets a Gaussian update with the norms of the source's
};

// A way to make maps: one file in maps/methods/. The file's name with '-' for '_' is the word on the
// command line.
struct Method {
  std::string_view summary;
  Needs needs;
  bool same_widths = false;  // only between spaces of equal width
  Carries carries = Carries::kUpdate;
  bool masks = false;   // what is carried is masked by the target's gradients
  bool stream = false;  // what is added to the residual stream has the stream's own map
  Obeys obeys;
  bool offered = false;  // named in help; the others are there to compare with
  // Throws InputError when the problem is not one for this method, NumericError when there is no
  // trustworthy answer.
  Map (*solve)(const Problem& problem, const Options& options);
};

// Every method in this build, sorted by name.
std::span<const Plugin<Method>> all_methods();

// By its word on the command line, such as "pinv-tikhonov". Throws InputError that lists the words.
const Method& method(std::string_view word);
std::vector<std::string> method_words();

// What the method needs with these options: whitening takes both Grams. Throws InputError when the
// method does not heed an option that is set, or the option is out of range.
Needs needs_of(const Method& method, const Options& options);

}  // namespace theseus::maps
