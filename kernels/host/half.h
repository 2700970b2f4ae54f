#pragma once
// 16-bit floats as the host reads them from values it only reports: IEEE half and bfloat16. Pure; any thread.

#include <bit>
#include <cmath>
#include <cstdint>

namespace sluice::kernels {

inline float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline float half_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = std::ldexp(static_cast<float>(fraction), -24);
  return sign ? -small : small;
}

}  // namespace sluice::kernels
