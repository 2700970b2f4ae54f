#pragma once
// Sums the gradients that several consumers of one value sent back (graph-and-training §2.3). Part of the
// gradient pass; the builder's thread.

#include <vector>

#include "passes/gradients.h"

namespace sluice::passes {

/// One gradient from ≥ 0 contributions (none of them none). One passes through; dense ones become AddN (one a
/// device) or a fold of AddNs under `<node>_gradient_sum`; slices are concatenated; a mixture is made dense.
graph::GradValue aggregate(graph::Node& node, const std::vector<graph::GradValue>& parts,
                           AggregationMethod method, Loc loc);

/// Concatenates slices (values and indices along axis 0, dense_shape of the first; indices become int64 when
/// they differ). No duplicates are merged.
graph::IndexedSlices concat_slices(const std::vector<graph::GradValue>& parts, Loc loc);

}  // namespace sluice::passes
