#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/parameter.h"

namespace theseus::model {

// How a checkpoint may spell a family's names.
struct Spelling {
  // Put before every name by wrappers such as DistributedDataParallel.
  std::vector<std::string> wrappers = {"", "module.", "model.", "_orig_mod."};
  // A tensor that every checkpoint of the family has: where it is found decides the wrapper.
  std::string anchor;
  // Other spellings of a name, by older versions of the library; may be null.
  std::vector<std::string> (*aliases)(const std::string& name) = nullptr;
};

// A family's declaration of its parameters against one checkpoint. Each call checks that the tensor
// is there with the shape the config implies; finish() that nothing else is there. Only headers are
// read. Throws InputError.
class Declaration {
 public:
  Declaration(const checkpoint::Checkpoint& checkpoint, Spelling spelling);

  // The parameters declared from now on belong to this block.
  void in_block(int64_t block) { block_ = block; }

  auto aliases() const { return spelling_.aliases; }
  bool has(const std::string& name) const { return find(name) != nullptr; }

  void tensor(const std::string& name, std::vector<int64_t> shape, std::vector<std::string> axes);
  // weight [out, in] and, if `bias`, bias [out] of a linear layer.
  struct Side {
    std::string space;
    int64_t width;
  };
  void linear(const std::string& module, const Side& out, const Side& in, bool bias);
  // One tensor whose rows are those of several: `name` [sum of out widths, in], or [sum] for a bias
  // (`in.width` 0). Parts are named after the last word of their space.
  void fused(const std::string& name, const std::vector<Side>& outs, const Side& in);
  // weight [width] and, if `bias`, bias [width], in the space of the norm's output.
  void norm(const std::string& module, const Side& out, bool bias);

  // `name` is `tied_to`, which has been declared. The checkpoint may hold a copy of it: that it is a
  // copy, bit for bit, is checked here.
  void tied(const std::string& name, const std::string& tied_to);
  // What is known and not run. Patterns: a name, or one with '*' as its first or last character.
  // Buffers can be recomputed from the config and are passed over; heads are listed in not_run.
  void buffers(std::initializer_list<std::string_view> patterns);
  void heads_not_run(std::initializer_list<std::string_view> patterns);

  // Throws InputError naming every tensor that was not declared.
  void finish() const;

  std::vector<Parameter> parameters;
  std::vector<Tie> ties;
  std::vector<std::string> not_run;

 private:
  const checkpoint::TensorInfo* find(const std::string& name) const;
  const checkpoint::TensorInfo& claim(const std::string& name, const std::vector<int64_t>& shape);
  std::vector<std::string> claim_matching(std::initializer_list<std::string_view> patterns);

  const checkpoint::Checkpoint& checkpoint_;
  Spelling spelling_;
  std::string wrapper_;
  std::set<std::string, std::less<>> claimed_;
  int64_t block_ = kOuter;
};

}  // namespace theseus::model
