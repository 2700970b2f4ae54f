#pragma once
// CRC-32C (Castagnoli), as TFRecord and TensorBundle files use it, and their "masked" form (a CRC stored
// beside the data it covers must not look like data). The SSE4.2 instruction where the CPU has it, a table
// otherwise. Pure; any thread. Example: `crc32c("123456789") == 0xE3069283`.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::runtime::io {

/// CRC of data that follows bytes whose CRC is `crc`.
uint32_t crc32c_extend(uint32_t crc, const void* data, size_t size);
inline uint32_t crc32c(std::string_view data) { return crc32c_extend(0, data.data(), data.size()); }

constexpr uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr uint32_t unmask_crc(uint32_t masked) {
  const uint32_t r = masked - 0xa282ead8u;
  return (r >> 17) | (r << 15);
}

/// The table form, exposed so that a test can compare the two.
uint32_t crc32c_extend_by_table(uint32_t crc, const void* data, size_t size);

}  // namespace sluice::runtime::io
