#pragma once
// The statistics of columns (channels) in one pass over memory.

#include <cstddef>
#include <cstdint>

#include "runtime/work_queue.h"

namespace sluice::kernels::cpu {

/// Bytes of scratch that column_stats needs.
size_t column_stats_scratch(int64_t rows, int64_t cols);
/// Mean and biased variance of each column of row-major rows × cols. Moments are taken about the first row of
/// each chunk of rows, chunks are joined in order in double (Chan): sound however large the mean is, and the
/// same bits at any width. `unbiased`, if any, gets variance·m/max(m−1, 1). NaN where there are no rows.
void column_stats(const float* x, int64_t rows, int64_t cols, float* mean, float* variance, float* unbiased,
                  void* scratch, runtime::WorkQueue& queue);

}  // namespace sluice::kernels::cpu
