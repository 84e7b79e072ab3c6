// The half of the unpickler that makes containers, tensors and storages.
#include <algorithm>
#include <iterator>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/unpickler.h"

namespace theseus::checkpoint {

void Unpickler::append(Value container, const std::vector<Value>& values, PickleKind kind) {
  check(
      node(container).kind == kind,
      kind == Kind::kList ? "appends to other than a list" : "sets a key of other than a dict");
  check(kind == Kind::kList || values.size() % 2 == 0, "a key has no value");
  charge(values.size());
  auto& items = node(container).items;
  items.insert(items.end(), values.begin(), values.end());
}

void Unpickler::pop_tuple(size_t size) {
  std::vector<Value> values(size);
  std::generate(values.rbegin(), values.rend(), [this] { return pop(); });
  charge(size);
  const Value tuple = make(Kind::kTuple);
  node(tuple).items = std::move(values);
  push(tuple);
}

bool Unpickler::container(int opcode) {
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case ']':
      push(make(Kind::kList));
      return true;
    case '}':
      push(make(Kind::kDict));
      return true;
    case ')':
    case 0x85:
    case 0x86:
    case 0x87:  // EMPTY_TUPLE, TUPLE1, TUPLE2, TUPLE3
      pop_tuple(opcode == ')' ? 0 : static_cast<size_t>(opcode - 0x84));
      return true;
    case 't':
    case 'l':
    case 'd':  // TUPLE, LIST, DICT of what follows the mark
    {
      auto values = pop_marked();
      check(opcode != 'd' || values.size() % 2 == 0, "a key has no value");
      charge(values.size());
      push(make(opcode == 't' ? Kind::kTuple : opcode == 'l' ? Kind::kList : Kind::kDict));
      node(top()).items = std::move(values);
      return true;
    }
    case 'a':  // APPEND
    {
      const Value value = pop();
      append(top(), {value}, Kind::kList);
      return true;
    }
    case 'e':
    case 'u':  // APPENDS, SETITEMS
    {
      const auto values = pop_marked();
      append(top(), values, opcode == 'e' ? Kind::kList : Kind::kDict);
      return true;
    }
    case 's':  // SETITEM
    {
      const Value value = pop();
      const Value key = pop();
      append(top(), {key, value}, Kind::kDict);
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::object(int opcode) {
  switch (opcode) {
    case 'c':  // GLOBAL
    {
      const auto module = line();
      push_global(module, line());
      return true;
    }
    case 0x93:  // STACK_GLOBAL
    {
      const Value name = pop();
      const Value module = pop();
      check(
          node(name).kind == Kind::kText && node(module).kind == Kind::kText,
          "a global's name is not text");
      push_global(node(module).text, node(name).text);
      return true;
    }
    case 'R':
    case 0x81:  // REDUCE, NEWOBJ: alike for the classes that the table knows
    {
      const Value arguments = pop();
      const Value function = pop();
      push(reduce(function, arguments, false));
      return true;
    }
    case 'Q':  // BINPERSID
      persistent();
      return true;
    case 'b':
      build();
      return true;
    default:
      return false;
  }
}

void Unpickler::push_global(std::string_view module, std::string_view name) {
  const PickleGlobal* found = find_pickle_global(module, name);
  require(
      found != nullptr, into_.origin_, ": the pickle asks for '", printable(module), ".",
      printable(name),
      "'. Only tensors, dicts, lists, numbers and text are read, and nothing in a file is run; a "
      "checkpoint saved as a plain state dict (torch.save(model.state_dict(), path)) would load");
  push(make(Kind::kGlobal, found - all_pickle_globals().data()));
}

const PickleGlobal* Unpickler::global(Value value) const {
  return node(value).kind == Kind::kGlobal
             ? &all_pickle_globals()[static_cast<size_t>(node(value).integer)]
             : nullptr;
}

// ('storage', class, key, location, elements): what torch.save writes for a storage, whose bytes
// are the zip entry data/<key>. The location is where it lived; everything is read to the CPU.
void Unpickler::persistent() {
  const Value id = pop();
  const auto& items = node(id).items;
  check(node(id).kind == Kind::kTuple && items.size() >= 5, "a persistent id is not a storage's");
  const auto* type = global(items[1]);
  check(
      node(items[0]).kind == Kind::kText && node(items[0]).text == "storage" && type != nullptr &&
          type->role == GlobalRole::kStorage && node(items[2]).kind == Kind::kText &&
          node(items[4]).kind == Kind::kInteger,
      "a persistent id is not a storage's");
  const auto kept = {items[1], items[4]};
  charge(kept.size());
  const Value storage = make(Kind::kStorage, 0, node(items[2]).text);
  node(storage).items = kept;
  push(storage);
}

// State of an OrderedDict is what hangs on the object itself, such as a state dict's _metadata
// (module versions); the weights are in the items.
void Unpickler::build() {
  pop();
  check(node(top()).kind == Kind::kDict, "sets the state of other than a dict");
}

Pickle::Value Unpickler::reduce(Value function, Value arguments, bool nested) {
  const auto* found = global(function);
  check(found != nullptr && node(arguments).kind == Kind::kTuple, "calls other than a known name");
  const auto items = node(arguments).items;
  charge(items.size());
  const auto has = [&](size_t count, Kind kind) {
    return items.size() >= count && node(items[0]).kind == kind;
  };
  switch (found->role) {
    case GlobalRole::kOrderedDict:
      return reduce_ordered_dict(items);
    case GlobalRole::kSize:
      check(has(1, Kind::kTuple) || has(1, Kind::kList), "torch.Size of other than a tuple");
      return items[0];
    case GlobalRole::kEncode:
      check(has(1, Kind::kText), "encodes other than text");
      return make(Kind::kBytes, 0, node(items[0]).text);
    case GlobalRole::kBytes:
      check(items.empty(), "bytes() with arguments");
      return make(Kind::kBytes);
    case GlobalRole::kTensorV1:
    case GlobalRole::kTensorV3:
      return reduce_tensor(*found, items);
    case GlobalRole::kParameter:
      check(has(1, Kind::kTensor), "a parameter of other than a tensor");
      return items[0];
    case GlobalRole::kFromType:
      return reduce_from_type(items, nested);
    default:
      fail(c10::str("calls ", found->module, ".", found->name, ", which is not a function"));
  }
}

// OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]).
Pickle::Value Unpickler::reduce_ordered_dict(const std::vector<Value>& arguments) {
  std::vector<Value> items;
  for (const Value list : arguments) {
    check(node(list).kind == Kind::kList, "OrderedDict of other than a list");
    charge(2 * node(list).items.size());
    for (const Value pair : node(list).items) {
      const auto& both = node(pair).items;
      check(
          (node(pair).kind == Kind::kList || node(pair).kind == Kind::kTuple) && both.size() == 2,
          "OrderedDict of other than pairs");
      items.insert(items.end(), both.begin(), both.end());
    }
  }
  const Value dict = make(Kind::kDict);
  node(dict).items = std::move(items);
  return dict;
}

// A tensor keeps storage, offset, size, stride and, when it has its own, the dtype.
Pickle::Value Unpickler::reduce_tensor(
    const PickleGlobal& function, const std::vector<Value>& arguments) {
  const bool own_dtype = function.role == GlobalRole::kTensorV3;
  check(arguments.size() >= (own_dtype ? 7U : 4U), "a tensor with too few arguments");
  const auto kind = [&](size_t i) { return node(arguments[i]).kind; };
  check(
      kind(0) == Kind::kStorage && kind(1) == Kind::kInteger && kind(2) == Kind::kTuple &&
          kind(3) == Kind::kTuple,
      "a tensor is not described by (storage, offset, size, stride)");
  std::vector<Value> kept(arguments.begin(), arguments.begin() + 4);
  if (own_dtype) {
    const auto* dtype = global(arguments[6]);
    check(dtype != nullptr && dtype->role == GlobalRole::kDtype, "a tensor's dtype is not one");
    kept.push_back(arguments[6]);
  }
  charge(kept.size());
  const Value tensor = make(Kind::kTensor);
  node(tensor).items = std::move(kept);
  return tensor;
}

// How a tensor with Python attributes of its own is saved; the attributes are not read.
Pickle::Value Unpickler::reduce_from_type(const std::vector<Value>& arguments, bool nested) {
  check(!nested && arguments.size() >= 3, "a tensor of a type is not described");
  const auto* type = global(arguments[1]);
  check(type != nullptr && type->role == GlobalRole::kTensorType, "a tensor's type is not one");
  const Value made = reduce(arguments[0], arguments[2], true);
  check(node(made).kind == Kind::kTensor, "a tensor's type makes no tensor");
  return made;
}

}  // namespace theseus::checkpoint
