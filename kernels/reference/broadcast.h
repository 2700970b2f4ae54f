#pragma once
// NumPy broadcasting of two operands as one walk: strides 0 = output, 1 = x, 2 = y (0 where repeated).

#include "kernels/reference/common.h"

namespace sluice::kernels {

/// InvalidArgument "Incompatible shapes" when the dims can't be broadcast to `out`.
Walk<3> broadcast_walk(const Dims& out, const Dims& x, const Dims& y);

}  // namespace sluice::kernels
