#include "theseus/output/write_model.h"

#include <cmath>
#include <map>
#include <system_error>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/output/add_delta.h"
#include "theseus/output/layout.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

double share(double part_squared, double whole_squared) {
  return whole_squared > 0 ? std::sqrt(part_squared / whole_squared) : 0;
}

// Yields the tensors of the new model one after the other, as the checkpoint's writer asks.
class Merge {
 public:
  Merge(const model::Model& target, const Deltas& deltas, double alpha, const ModelLayout& layout)
      : target_(target), deltas_(deltas), alpha_(alpha) {
    for (const auto& parameter : target.architecture().parameters) {
      owners_[parameter.stored] = parameter.tensor;
    }
    for (const auto& tie : target.architecture().ties) {
      if (!tie.stored.empty()) {
        owners_[tie.stored] = tie.tied_to;
      }
    }
    for (const auto& entry : layout.entries) {
      const auto owner = owners_.find(entry.name);
      if (owner != owners_.end() && entry.tied_to.empty()) {
        ++copies_[owner->second];
      }
    }
  }

  at::Tensor next(const std::string& stored) {
    forget_last();
    last_ = stored;
    const auto base = target_.checkpoint().tensor(stored);
    const auto owner = owners_.find(stored);
    if (owner == owners_.end()) {
      return base;
    }
    const auto value = changed(owner->second, stored, base);
    return value.defined() ? value : base;
  }

  WrittenModel finish(std::vector<std::string> files) {
    forget_last();
    written_.files = std::move(files);
    written_.norm = std::sqrt(norm_squared_);
    written_.rounding_loss = share(lost_squared_, norm_squared_);
    return std::move(written_);
  }

 private:
  // Undefined: as the base has it.
  at::Tensor changed(const std::string& tensor, const std::string& stored, const at::Tensor& base) {
    int& left = copies_.at(tensor);
    --left;
    const auto earlier = kept_.find(tensor);
    if (earlier != kept_.end()) {
      const auto value = earlier->second;
      if (left == 0) {
        kept_.erase(earlier);
      }
      return value;
    }
    const auto value = sum(tensor, stored, base);
    if (left > 0) {
      kept_[tensor] = value;
    }
    return value;
  }

  at::Tensor sum(const std::string& tensor, const std::string& stored, const at::Tensor& base) {
    const auto delta = deltas_(tensor);
    if (!delta.defined() || alpha_ == 0) {
      return {};
    }
    require<InternalError>(
        delta.sizes() == base.sizes(), "the delta of ", tensor, " has shape ", delta.sizes(),
        "; the tensor has ", base.sizes());
    auto sum = with_context("adding to " + stored, [&] { return add_delta(base, delta, alpha_); });
    require<NumericError>(
        sum.finite, stored, " would hold NaN or infinity after ", alpha_,
        " times its delta is added: ",
        std::isfinite(sum.norm_squared) ? "too large for " : "the delta is not finite; stored as ",
        base.scalar_type());
    norm_squared_ += sum.norm_squared;
    lost_squared_ += sum.lost_squared;
    written_.changes.push_back(
        {.tensor = tensor,
         .norm = std::sqrt(sum.norm_squared),
         .rounding_loss = share(sum.lost_squared, sum.norm_squared)});
    return std::move(sum.value);
  }

  void forget_last() {
    if (!last_.empty()) {
      target_.checkpoint().forget(last_);
    }
  }

  const model::Model& target_;
  const Deltas& deltas_;
  double alpha_;
  std::map<std::string, std::string> owners_;  // stored name -> tensor
  std::map<std::string, int> copies_;          // tensor -> how often it is still to be written
  std::map<std::string, at::Tensor> kept_;     // tensor -> its new values, for the next copy
  std::string last_;
  double norm_squared_ = 0;
  double lost_squared_ = 0;
  WrittenModel written_;
};

void check_directory(const fs::path& directory) {
  std::error_code error;
  const fs::directory_iterator files(directory, error);
  require(!error, "cannot write into ", directory.string(), ": ", error.message());
  for (const auto& file : files) {
    require(
        !checkpoint::is_known_weights_name(file.path().filename().string()), directory.string(),
        " already holds ", file.path().filename().string(), "; write to an empty directory");
  }
}

}  // namespace

WrittenModel write_model(
    const model::Model& target,
    const fs::path& directory,
    const Deltas& deltas,
    double alpha,
    const Watch& watch) {
  return with_context("writing a model to " + directory.string(), [&] {
    require(std::isfinite(alpha), "alpha is ", alpha, "; expected a finite number");
    check_directory(directory);
    const auto layout = layout_of(target);
    Merge merge(target, deltas, alpha, layout);
    const int64_t all = layout.bytes();
    int64_t done = 0;
    const auto tell = [&](int64_t bytes) {
      if (watch) {
        watch(done, all);
      }
      done += bytes;
    };
    auto files = checkpoint::write_checkpoint(
        directory, layout.files, layout.entries, [&](const checkpoint::Entry& entry) {
          auto value = merge.next(entry.name);
          tell(static_cast<int64_t>(value.nbytes()));
          return value;
        });
    tell(0);
    return merge.finish(std::move(files));
  });
}

}  // namespace theseus::output
