#pragma once
// Steps that run at the same time must not meet in memory: a plan's places were chosen for its serial order.

#include <vector>

#include "runtime/plan/plan.h"

namespace sluice::runtime::plan {

/// Adds to Step::after what reuse of memory asks for (everybody who touches a buffer before whoever takes its
/// bytes next; every reader of a held variable before the step that ends the hold), and fills `successors`.
/// Leaves `successors` empty, so that the plan runs in order, when it is too long for this.
void allow_concurrency(const PlanGraph& g, std::vector<Step>& steps,
                       std::vector<std::vector<int>>& successors);

}  // namespace sluice::runtime::plan
