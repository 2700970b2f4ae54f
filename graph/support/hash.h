#pragma once
// A 64-bit hash for cache keys: FNV-1a over bytes with a final mix. Stable across runs and machines, so it
// may name files on disk; not for untrusted keys. Pure; any thread.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

inline uint64_t hash_mix(uint64_t h) {
  h ^= h >> 33, h *= 0xff51afd7ed558ccdULL, h ^= h >> 33, h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ (h >> 33);
}

inline uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0xcbf29ce484222325ULL) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t h = seed;
  for (size_t i = 0; i < size; ++i) h = (h ^ p[i]) * 0x100000001b3ULL;
  return hash_mix(h);
}

inline uint64_t hash_string(std::string_view s, uint64_t seed = 0xcbf29ce484222325ULL) {
  return hash_bytes(s.data(), s.size(), seed);
}

inline uint64_t hash_combine(uint64_t a, uint64_t b) { return hash_mix(a * 0x9e3779b97f4a7c15ULL + b); }

}  // namespace sluice
