#include "theseus/checkpoint/unpickler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::checkpoint {
namespace {

constexpr int kProtocol = 0x80;
constexpr int kStop = '.';
constexpr uint64_t kLowestProtocol = 2;
constexpr uint64_t kHighestProtocol = 5;

}  // namespace

Unpickler::Unpickler(Pickle& into, std::span<const std::byte> bytes)
    : into_(into),
      bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      // Each item put into a container took at least one byte of pickle, except that OrderedDict
      // may copy a list once. Without a limit, copying one long list again and again would make a
      // small file quadratically large.
      items_left_(2 * bytes.size() + 16) {}

void Unpickler::fail(const std::string& what) const {
  throw InputError(
      c10::str(into_.origin_, ": damaged pickle at byte ", opcode_position_, ": ", what));
}

void Unpickler::check(bool holds, std::string_view what) const {
  if (!holds) {
    fail(std::string(what));
  }
}

void Unpickler::charge(size_t items) {
  check(items <= items_left_, "makes more values than a pickle of its size can");
  items_left_ -= items;
}

std::string_view Unpickler::take(uint64_t size) {
  if (size > bytes_.size() - position_) {
    fail(c10::str(size, " bytes are needed, ", bytes_.size() - position_, " are left"));
  }
  const auto result = bytes_.substr(position_, size);
  position_ += size;
  return result;
}

uint64_t Unpickler::unsigned_integer(size_t size) {
  const auto bytes = take(size);
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::string_view Unpickler::line() {
  const size_t end = bytes_.find('\n', position_);
  check(end != std::string_view::npos, "a line does not end");
  const auto result = take(end - position_);
  position_ += 1;
  return result;
}

// Two's complement, little-endian, of any length. Training states hold seeds of more than 64 bits,
// which no tensor needs: those become floating point.
Pickle::Value Unpickler::long_integer(uint64_t size) {
  const auto bytes = take(size);
  const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
  uint64_t low = negative ? ~uint64_t{0} : 0;
  double approximate = negative ? -1 : 0;
  bool fits = true;
  for (size_t i = bytes.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    approximate = approximate * 256 + byte;
    fits = fits && (i < 8 || byte == (negative ? 0xff : 0));
    low = i < 8 ? low << 8 | byte : low;
  }
  const auto result = std::bit_cast<int64_t>(low);
  return fits && (result < 0) == negative ? make(Kind::kInteger, result)
                                          : make(Kind::kFloat, std::bit_cast<int64_t>(approximate));
}

void Unpickler::run() {
  check(
      !bytes_.empty() && static_cast<unsigned char>(bytes_[0]) == kProtocol,
      "does not begin with a protocol of 2 or higher");
  while (true) {
    opcode_position_ = position_;
    const int opcode = static_cast<unsigned char>(take(1)[0]);
    if (opcode == kStop) {
      break;
    }
    if (!(scalar(opcode) || sized(opcode) || container(opcode) || memo(opcode) || object(opcode))) {
      fail(c10::str(
          "opcode ", opcode, " is not one that tensors, dicts, lists, numbers or text need"));
    }
  }
  check(stack_.size() == 1 && marks_.empty(), "ends with other than one value");
  into_.root_ = stack_.back();
}

void Unpickler::protocol() {
  const uint64_t number = unsigned_integer(1);
  if (number < kLowestProtocol || number > kHighestProtocol) {
    fail(c10::str("protocol ", number, "; 2 to 5 are read"));
  }
}

bool Unpickler::scalar(int opcode) {
  switch (opcode) {
    case kProtocol:
      protocol();
      return true;
    case 0x95:  // FRAME: only a hint for buffering
      check(unsigned_integer(8) <= bytes_.size() - position_, "a frame is longer than the pickle");
      return true;
    case 'N':
      push(make(Kind::kNone));
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(make(Kind::kBool, opcode == 0x88 ? 1 : 0));
      return true;
    case 'K':  // BININT1
      push(make(Kind::kInteger, static_cast<int64_t>(unsigned_integer(1))));
      return true;
    case 'M':  // BININT2
      push(make(Kind::kInteger, static_cast<int64_t>(unsigned_integer(2))));
      return true;
    case 'J':  // BININT
      push(make(Kind::kInteger, static_cast<int32_t>(unsigned_integer(4))));
      return true;
    case 0x8a:  // LONG1
    case 0x8b:  // LONG4
      push(long_integer(unsigned_integer(opcode == 0x8a ? 1 : 4)));
      return true;
    case 'G':  // BINFLOAT, big-endian
      push(make(Kind::kFloat, std::bit_cast<int64_t>(__builtin_bswap64(unsigned_integer(8)))));
      return true;
    default:
      return false;
  }
}

bool Unpickler::sized(int opcode) {
  struct Sized {
    int opcode;
    size_t length;
    Kind kind;
  };
  static constexpr Sized kSized[] = {
      {0x8c, 1, Kind::kText},   // SHORT_BINUNICODE
      {'X', 4, Kind::kText},    // BINUNICODE
      {0x8d, 8, Kind::kText},   // BINUNICODE8
      {'U', 1, Kind::kText},    // SHORT_BINSTRING: Python 2's str
      {'T', 4, Kind::kText},    // BINSTRING
      {'C', 1, Kind::kBytes},   // SHORT_BINBYTES
      {'B', 4, Kind::kBytes},   // BINBYTES
      {0x8e, 8, Kind::kBytes},  // BINBYTES8
      {0x96, 8, Kind::kBytes},  // BYTEARRAY8
  };
  for (const Sized& row : kSized) {
    if (row.opcode == opcode) {
      push(make(row.kind, 0, take(unsigned_integer(row.length))));
      return true;
    }
  }
  return false;
}

bool Unpickler::memo(int opcode) {
  switch (opcode) {
    case 'h':  // BINGET
    case 'j':  // LONG_BINGET
    {
      const auto found = memo_.find(unsigned_integer(opcode == 'h' ? 1 : 4));
      check(found != memo_.end(), "refers to a value that was not kept");
      push(found->second);
      return true;
    }
    case 'q':  // BINPUT
    case 'r':  // LONG_BINPUT
    {
      const uint64_t slot = unsigned_integer(opcode == 'q' ? 1 : 4);
      memo_[slot] = top();
      return true;
    }
    case 0x94:  // MEMOIZE
      memo_[memo_.size()] = top();
      return true;
    case '0':  // POP: also takes a mark, as in Python
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case '1':  // POP_MARK
      pop_marked();
      return true;
    case '2':  // DUP
      push(top());
      return true;
    default:
      return false;
  }
}

Pickle::Value Unpickler::make(Kind kind, int64_t integer, std::string_view text) {
  check(into_.nodes_.size() < std::numeric_limits<uint32_t>::max(), "too many values");
  into_.nodes_.push_back({kind, integer, text, {}});
  return {static_cast<uint32_t>(into_.nodes_.size() - 1)};
}

Pickle::Value Unpickler::top() const {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  check(stack_.size() > floor, "a value is missing on the stack");
  return stack_.back();
}

Pickle::Value Unpickler::pop() {
  const Value value = top();
  stack_.pop_back();
  return value;
}

std::vector<Pickle::Value> Unpickler::pop_marked() {
  check(!marks_.empty(), "a mark is missing on the stack");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Value> values(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return values;
}

}  // namespace theseus::checkpoint
