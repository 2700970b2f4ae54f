#pragma once
// Philox4x32-10, the counter-based generator of TensorFlow's random ops (graph-and-training §1.8), and the
// distributions on top of it, bit for bit. A value type without hidden state.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace sluice::kernels {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  Philox(uint64_t seed, uint64_t seed2) : Philox(seed, 0, seed2) {}
  /// `low` and `high` are the 128-bit counter of the next block.
  Philox(uint64_t key, uint64_t low, uint64_t high)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}, low_(low), high_(high) {}

  void skip(uint64_t blocks) {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }
  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }

  Block next() {
    Block c{static_cast<uint32_t>(low_), static_cast<uint32_t>(low_ >> 32), static_cast<uint32_t>(high_),
            static_cast<uint32_t>(high_ >> 32)};
    std::array<uint32_t, 2> k = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
      k[0] += 0x9E3779B9u;
      k[1] += 0xBB67AE85u;
    }
    skip(1);
    return c;
  }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t low_, high_;
};

/// [0, 1) from the low 23 bits.
inline float uniform_float(uint32_t x) {
  const uint32_t bits = (127u << 23) | (x & 0x7fffffu);
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f - 1.0f;
}
/// [0, 1) from 20 + 32 bits.
inline double uniform_double(uint32_t x0, uint32_t x1) {
  const uint64_t bits = (uint64_t{1023} << 52) | (uint64_t{x0 & 0xfffffu} << 32) | x1;
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d - 1.0;
}

/// Two normal values by Box-Muller.
inline void normal_float(uint32_t x0, uint32_t x1, float& f0, float& f1) {
  constexpr float kTiny = 1.0e-7f;
  float u1 = uniform_float(x0);
  if (u1 < kTiny) u1 = kTiny;
  const float v1 = static_cast<float>(2.0f * M_PI * static_cast<double>(uniform_float(x1)));
  const float u2 = std::sqrt(-2.0f * std::log(u1));
  f0 = std::sin(v1) * u2;
  f1 = std::cos(v1) * u2;
}
inline void normal_double(const Philox::Block& b, double& d0, double& d1) {
  constexpr double kTiny = 1.0e-7;
  double u1 = uniform_double(b[0], b[1]);
  if (u1 < kTiny) u1 = kTiny;
  const double v1 = 2 * M_PI * uniform_double(b[2], b[3]);
  const double u2 = std::sqrt(-2.0 * std::log(u1));
  d0 = std::sin(v1) * u2;
  d1 = std::cos(v1) * u2;
}

}  // namespace sluice::kernels
