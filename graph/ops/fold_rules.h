#pragma once
// Value rules (OpDef::fold) for integer arithmetic that feeds shapes: element by element, each element known
// or not. A result that would overflow its type, or a division by zero, is left unknown: the kernel's verdict
// counts. Pure; any thread.

#include <optional>

#include "graph/fold.h"
#include "graph/op.h"

namespace sluice::graph::ops {

using IntBinary = std::optional<int64_t> (*)(int64_t x, int64_t y);
using IntUnary = std::optional<int64_t> (*)(int64_t x);

/// Broadcasts a scalar or one-element operand against the other.
FoldFn fold_binary(IntBinary f);
FoldFn fold_unary(IntUnary f);
/// Reduction of a vector along its only axis; `init` is the value of an empty one.
FoldFn fold_reduction(IntBinary f, int64_t init);
/// Integer to integer casts.
void fold_cast(FoldContext& c);

std::optional<int64_t> int_add(int64_t x, int64_t y);
std::optional<int64_t> int_sub(int64_t x, int64_t y);
std::optional<int64_t> int_mul(int64_t x, int64_t y);
std::optional<int64_t> int_floor_div(int64_t x, int64_t y);
std::optional<int64_t> int_truncate_div(int64_t x, int64_t y);
std::optional<int64_t> int_floor_mod(int64_t x, int64_t y);
std::optional<int64_t> int_truncate_mod(int64_t x, int64_t y);
std::optional<int64_t> int_maximum(int64_t x, int64_t y);
std::optional<int64_t> int_minimum(int64_t x, int64_t y);

}  // namespace sluice::graph::ops
