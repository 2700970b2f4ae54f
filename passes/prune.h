#pragma once
// Cuts a graph down to what some nodes need: their inputs, control inputs and colocation targets,
// transitively, as TensorFlow's extract_sub_graph does. Collections lose what is gone. The builder's thread.

#include <vector>

#include "graph/graph.h"

namespace sluice::passes {

/// Removes every node that none of `keep` needs; returns how many. Running it again removes nothing.
/// FailedPrecondition when the graph is finalized.
int prune(graph::Graph& g, const std::vector<graph::Node*>& keep);

}  // namespace sluice::passes
