#pragma once

#include <initializer_list>
#include <map>
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
    int64_t heads = 0;
    bool rigid_heads = false;
    std::string norm;
  };
  void linear(const std::string& module, const Side& out, const Side& in, bool bias);
  // The linear layer declared last reads some rows of its input only, which are the space `pooled`.
  void reads_pooled(const std::string& pooled);
  // A linear layer whose rows are those of several: tensor `weight` [sum of out widths, in] and,
  // unless empty, `bias` [sum]. Parts are named after the last word of their space.
  void fused(
      const std::string& module,
      const std::string& weight,
      const std::string& bias,
      const std::vector<Side>& outs,
      const Side& in);
  // A linear layer without bias whose one tensor is stored [in, out]. It reads some rows of `in`
  // only, which are the space `pooled`.
  void projection(
      const std::string& name, const Side& out, const Side& in, const std::string& pooled);
  // A linear layer onto the vocabulary that reads the tensor of an embedding.
  void tied_head(const std::string& module, const std::string& weight, const Side& in);
  // weight [width] and, if `bias`, bias [width], in the space of the norm's output. What the norm
  // reads is a space of its own, named after it.
  void norm(const std::string& module, const Side& out, bool bias);
  // A gain [width] that is shared by all heads: its axis is fixed.
  void head_norm(const std::string& module, int64_t width);
  // `space` has the units of `behind`, which lies behind an activation function.
  void same_units(const Side& space, const Side& behind);

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
  std::vector<Linear> linears;
  std::vector<Norm> norms;
  std::map<std::string, Space> spaces;
  std::vector<Tie> ties;
  std::vector<std::string> not_run;

 private:
  const checkpoint::TensorInfo* find(const std::string& name) const;
  const checkpoint::TensorInfo& claim(const std::string& name, const std::vector<int64_t>& shape);
  void space(const Side& side);
  void part(const std::string& name, const Side& out, const Side* in, int64_t& row);
  std::vector<std::string> claim_matching(std::initializer_list<std::string_view> patterns);

  const checkpoint::Checkpoint& checkpoint_;
  Spelling spelling_;
  std::string wrapper_;
  std::set<std::string, std::less<>> claimed_;
  int64_t block_ = kOuter;
};

}  // namespace theseus::model
