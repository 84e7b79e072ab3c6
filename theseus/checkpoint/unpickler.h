#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "theseus/checkpoint/pickle.h"
#include "theseus/checkpoint/pickle_globals.h"

namespace theseus::checkpoint {

// The stack machine that fills a Pickle; used by its constructor only. Every opcode either moves
// handles on the stack or adds one node; none calls anything.
class Unpickler {
 public:
  Unpickler(Pickle& into, std::span<const std::byte> bytes);
  void run();

 private:
  using Value = Pickle::Value;
  using Kind = PickleKind;

  // Reading. Every length is checked against what is left.
  std::string_view take(uint64_t size);
  uint64_t unsigned_integer(size_t size);
  std::string_view line();
  Value long_integer(uint64_t size);
  void protocol();

  // The opcodes, by what they do; each returns whether it knew the opcode.
  bool scalar(int opcode);
  bool sized(int opcode);
  bool container(int opcode);
  bool memo(int opcode);
  bool object(int opcode);

  // The stack.
  Value make(Kind kind, int64_t integer = 0, std::string_view text = {});
  void push(Value value) { stack_.push_back(value); }
  Value pop();
  Value top() const;
  std::vector<Value> pop_marked();
  void pop_tuple(size_t size);
  void append(Value container, const std::vector<Value>& values, PickleKind kind);

  // Objects.
  void push_global(std::string_view module, std::string_view name);
  void persistent();
  void build();
  Value reduce(Value function, Value arguments, bool nested);
  Value reduce_ordered_dict(const std::vector<Value>& arguments);
  Value reduce_tensor(const PickleGlobal& global, const std::vector<Value>& arguments);
  Value reduce_from_type(const std::vector<Value>& arguments, bool nested);
  const PickleGlobal* global(Value value) const;

  void charge(size_t items);
  Pickle::Node& node(Value value) { return into_.nodes_[value.index]; }
  const Pickle::Node& node(Value value) const { return into_.nodes_[value.index]; }
  [[noreturn]] void fail(const std::string& what) const;
  void check(bool holds, std::string_view what) const;

  Pickle& into_;
  std::string_view bytes_;
  size_t position_ = 0;
  size_t opcode_position_ = 0;
  size_t items_left_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value> memo_;
};

}  // namespace theseus::checkpoint
