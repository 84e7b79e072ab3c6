#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace theseus::data::text {

// Words of bytes with a number each, and all of them that a text begins with.
class ByteTrie {
 public:
  void add(std::string_view word, int32_t number) {
    uint32_t node = 0;
    for (const char byte : word) {
      const auto made = children_.try_emplace(key_of(node, byte), nodes_);
      nodes_ += made.second ? 1 : 0;
      node = made.first->second;
    }
    numbers_[node] = number;
  }

  // Calls `found(length, number)` for each, the shortest first.
  template <class Found>
  void each_prefix(std::string_view text, Found&& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto child = children_.find(key_of(node, text[i]));
      if (child == children_.end()) {
        return;
      }
      node = child->second;
      const auto number = numbers_.find(node);
      if (number != numbers_.end()) {
        found(i + 1, number->second);
      }
    }
  }

  bool empty() const { return numbers_.empty(); }

 private:
  static uint64_t key_of(uint32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
  }

  std::unordered_map<uint64_t, uint32_t> children_;
  std::unordered_map<uint32_t, int32_t> numbers_;
  uint32_t nodes_ = 1;
};

}  // namespace theseus::data::text
