#pragma once
// Index checks shared by kernels that read or write rows by index.

#include "kernels/reference/common.h"

namespace sluice::kernels {

/// Throws TensorFlow's "indices[i,j] = v is not in [0, limit)" for flat position `at` of an index value.
[[noreturn]] void index_error(const Dims& dims, int64_t at, int64_t value, int64_t limit);
/// Every element of the index input must lie in [0, limit).
void check_indices(const KernelRun& r, int input, int64_t limit);

}  // namespace sluice::kernels
