#pragma once
// IDX files (the format of MNIST and its relatives), gzipped or not. The reader checks magic, type,
// dimensions and length before it allocates what the header asks for; errors are DataLoss (damaged) or
// NotFound (absent) and name the file. A pure function; any thread.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime::data {

/// Bytes in row-major order under `dims`.
struct IdxData {
  std::vector<int64_t> dims;
  std::vector<uint8_t> values;
};

/// Reads unsigned bytes only; another element type is DataLoss.
IdxData read_idx(const std::string& path);

}  // namespace sluice::runtime::data
