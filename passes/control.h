#pragma once
// Order without data: group, with_dependencies and tuple, in TensorFlow's shapes and names
// (graph-and-training §1.3). The builder's thread.

#include <string>
#include <vector>

#include "graph/grad.h"
#include "graph/graph.h"

namespace sluice::passes {

/// A NoOp that runs after all of `nodes`: one NoOp a device, and one that joins them where there are several.
/// An empty list gives a NoOp without inputs.
graph::Node& group(graph::Graph& g, const std::vector<graph::Node*>& nodes, const std::string& name = {},
                   Loc loc = Loc::current());

/// `value` that becomes available after `after` have run: an Identity beside it (on `values` of slices).
graph::GradValue with_dependencies(const std::vector<graph::Node*>& after, const graph::GradValue& value,
                                   const std::string& name = {}, Loc loc = Loc::current());

/// All values (and `controls`) computed before any result is visible; none stays none. InvalidArgument
/// "Must have at least one Tensor" when all are none.
std::vector<graph::GradValue> tuple(graph::Graph& g, const std::vector<graph::GradValue>& values,
                                    const std::string& name = {},
                                    const std::vector<graph::Node*>& controls = {}, Loc loc = Loc::current());

}  // namespace sluice::passes
