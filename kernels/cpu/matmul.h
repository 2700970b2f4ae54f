#pragma once
// What the kernels of matrix products share: the problem behind a node.

#include "kernels/cpu/common.h"

namespace sluice::kernels::cpu {

/// Row-major matrices, transposed ones by attribute: c[b] = a[b] · b[b] for `batch` products of m × k and
/// k × n; a shared operand is one matrix for all of them.
struct MatMulProblem {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool shared_a = false, shared_b = false;
};

/// Of MatMul, BatchMatMul or BatchMatMulV2. False and a reason for operands that are not float32, for empty
/// ones and for batch dims that broadcast in part.
bool matmul_problem(const KernelSpec& spec, MatMulProblem& p, Refusal& refusal);

}  // namespace sluice::kernels::cpu
