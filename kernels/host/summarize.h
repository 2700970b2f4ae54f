#pragma once
// Values as text in TensorFlow's form: "[[1 2 3][4...]]...".

#include <string>

#include "kernels/reference/common.h"

namespace sluice::kernels {

/// The first `limit` elements of an input (all when negative), without the outermost brackets.
std::string summarize(const KernelRun& r, int input, int64_t limit);

}  // namespace sluice::kernels
