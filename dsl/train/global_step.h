#pragma once
// The step counter of a graph: an int64 scalar variable `global_step` in GLOBAL_VARIABLES and GLOBAL_STEP.
// The builder's thread.

#include "dsl/variable.h"

namespace sluice::dsl::train {

/// Empty when the graph has none (or, after an error line, when it has several). InvalidArgument when it is
/// not an integer scalar.
Variable get_global_step(Graph& g);
/// AlreadyExists when there is one.
Variable create_global_step(Graph& g, Loc loc = Loc::current());
Variable get_or_create_global_step(Graph& g, Loc loc = Loc::current());

}  // namespace sluice::dsl::train
