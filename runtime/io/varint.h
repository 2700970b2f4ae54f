#pragma once
// Base-128 integers as tables and bundles store them. Pure; any thread.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::runtime::io {

inline void put_varint(std::string* out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

/// Takes one integer off the front of `in`; false when it is cut off or longer than 64 bits.
inline bool get_varint(std::string_view* in, uint64_t* v) {
  *v = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    *v |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace sluice::runtime::io
