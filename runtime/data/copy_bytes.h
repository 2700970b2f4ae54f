#pragma once
// memcpy that takes nothing from nowhere: arrays without elements may have no bytes at all.

#include <cstddef>
#include <cstring>

namespace sluice::runtime::data {

inline void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace sluice::runtime::data
