#pragma once
// An update that counts only in some runs: loss scaling leaves out a step whose gradients are not finite,
// accumulation all but every n-th. Without branches in the graph: the update runs, and where it is not to
// count every variable it wrote gets its former value back, bit by bit, before anything behind it runs. Costs
// a copy of those variables a run. The builder's thread.

#include <functional>

#include "dsl/tensor.h"

namespace sluice::dsl::train {

/// Calls `build`, which makes an update and returns its last op; returns an op after which the variables that
/// the new ops write hold the update where `keep` (a bool scalar) is true, and what they held before where it
/// is false. They are read behind the open control dependencies.
Node& apply_if(const Tensor& keep, const std::function<Node&()>& build, Loc loc = Loc::current());

}  // namespace sluice::dsl::train
