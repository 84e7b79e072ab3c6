#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace theseus::data {

// SplitMix64: the same numbers on every machine, which the standard library's distributions do not promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }

  // Below `count` > 0, each as likely as any other: the numbers that a remainder would favour are passed
  // over.
  uint64_t below(uint64_t count) {
    const uint64_t unfair = (std::numeric_limits<uint64_t>::max() % count + 1) % count;
    uint64_t number = next();
    while (number > std::numeric_limits<uint64_t>::max() - unfair) {
      number = next();
    }
    return number % count;
  }

 private:
  uint64_t state_;
};

// Fisher-Yates: the first `count` become a random choice without replacement, in random order.
template <class T>
void shuffle_front(std::vector<T>& items, size_t count, Random& random) {
  for (size_t i = 0; i < count && i + 1 < items.size(); ++i) {
    std::swap(items[i], items[i + random.below(items.size() - i)]);
  }
}

}  // namespace theseus::data
