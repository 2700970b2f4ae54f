#pragma once
// The input pipeline's own random numbers: SplitMix64, seeded by (seed, ordinal), so that what happens to the
// n-th image does not depend on threads or on images before it. A value; one thread each.

#include <cstdint>
#include <numeric>
#include <vector>

namespace sluice::runtime::data {

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t ordinal = 0) : state_(seed * 0x9E3779B97F4A7C15u + ordinal) {
    state_ = bits();
  }

  uint64_t bits() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high).
  float uniform(float low, float high) {
    return low + (high - low) * (static_cast<float>(bits() >> 40) * 0x1p-24f);
  }
  /// Uniform in [0, n); n > 0.
  uint64_t below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(bits()) * n) >> 64);
  }
  bool coin() { return (bits() >> 63) != 0; }
  /// Where the sequence stands; set_state goes on from there.
  uint64_t state() const { return state_; }
  void set_state(uint64_t state) { state_ = state; }

 private:
  uint64_t state_;
};

/// 0 … n−1 in an order that depends on the seed only.
inline std::vector<uint32_t> permutation(uint32_t n, uint64_t seed, uint64_t ordinal) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  Random random(seed, ordinal);
  for (uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace sluice::runtime::data
