#pragma once
// Checks of what a run asks for, made once per signature.

#include "runtime/plan_cache.h"

namespace sluice::runtime {

/// Throws with TensorFlow's texts: nothing requested, unknown or repeated feeds, wrong type or shape, fed and
/// fetched, fetches without outputs. `widened`: float tensors may be fed as double.
void check_request(const graph::Graph& graph, const RunRequest& request, bool widened);

}  // namespace sluice::runtime
