#pragma once
// Which nodes a run needs and in which order they are looked at: backwards from fetches and targets through
// data and control edges, not past fed outputs (graph-and-training §8.1). Nothing else runs.

#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace sluice::runtime::plan {

using FedSet = std::unordered_map<graph::Output, int, graph::OutputHash>;

/// The nodes a run needs, in no particular order. Iterative: depth is no limit.
std::vector<graph::Node*> needed_nodes(const graph::Graph& graph, const std::vector<graph::Output>& fetches,
                                       const std::vector<graph::Node*>& targets, const FedSet& fed);

/// Those nodes so that each follows what it needs among them; ops that write variables come as late as
/// possible, so that unordered reads see the state before the step; ties by id. Unimplemented naming a node
/// on a cycle (a TF1 loop).
std::vector<graph::Node*> lowering_order(const std::vector<graph::Node*>& nodes, const FedSet& fed);

/// Changes when anything that a plan of these nodes depends on does: edges, attributes, devices.
uint64_t fingerprint(const std::vector<graph::Node*>& nodes);

}  // namespace sluice::runtime::plan
