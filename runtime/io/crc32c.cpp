#include "runtime/io/crc32c.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include <array>
#include <cstring>

namespace sluice::runtime::io {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78u;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the CRC of byte b followed by k zero bytes; eight bytes then cost eight look-ups.
constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) ? kPolynomial : 0);
    t[0][b] = c;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xff];
  return t;
}

constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
// The instruction takes three cycles but one may start each cycle: three lanes side by side, of this many
// bytes.
constexpr size_t kLane = 2048;

// What kLane zero bytes make of a register, by four look-ups.
struct Shift {
  std::array<std::array<uint32_t, 256>, 4> t{};
  Shift() {
    for (size_t bit = 0; bit < 32; ++bit) {
      uint32_t c = uint32_t{1} << bit;
      for (size_t i = 0; i < kLane; ++i) c = (c >> 8) ^ kTables[0][c & 0xff];
      t[bit / 8][size_t{1} << bit % 8] = c;
    }
    for (auto& table : t)  // the rest by linearity
      for (size_t b = 1; b < 256; ++b) table[b] = table[b & (b - 1)] ^ table[b & (~b + 1)];
  }
  uint32_t operator()(uint32_t c) const {
    return t[0][c & 0xff] ^ t[1][(c >> 8) & 0xff] ^ t[2][(c >> 16) & 0xff] ^ t[3][c >> 24];
  }
};

inline uint64_t word_at(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t extend_by_instruction(uint32_t crc, const void* data,
                                                                 size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t c = ~crc;
  if (size >= 3 * kLane) {
    static const Shift shift;
    for (; size >= 3 * kLane; size -= 3 * kLane, p += 3 * kLane) {
      uint64_t second = 0, third = 0;
      for (size_t i = 0; i < kLane; i += 8) {
        c = _mm_crc32_u64(c, word_at(p + i));
        second = _mm_crc32_u64(second, word_at(p + kLane + i));
        third = _mm_crc32_u64(third, word_at(p + 2 * kLane + i));
      }
      c = shift(shift(static_cast<uint32_t>(c)) ^ static_cast<uint32_t>(second)) ^
          static_cast<uint32_t>(third);
    }
  }
  for (; size >= 8; size -= 8, p += 8) c = _mm_crc32_u64(c, word_at(p));
  auto c32 = static_cast<uint32_t>(c);
  for (; size > 0; --size, ++p) c32 = _mm_crc32_u8(c32, *p);
  return ~c32;
}
#endif

}  // namespace

uint32_t crc32c_extend_by_table(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    uint32_t low, high;
    std::memcpy(&low, p, 4), std::memcpy(&high, p + 4, 4);
    low ^= c;
    c = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
        kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][(high >> 8) & 0xff] ^
        kTables[1][(high >> 16) & 0xff] ^ kTables[0][high >> 24];
  }
  for (; size > 0; --size, ++p) c = (c >> 8) ^ kTables[0][(c ^ *p) & 0xff];
  return ~c;
}

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t size) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return extend_by_instruction(crc, data, size);
#endif
  return crc32c_extend_by_table(crc, data, size);
}

}  // namespace sluice::runtime::io
