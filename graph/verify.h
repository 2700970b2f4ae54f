#pragma once
// Checks that a graph obeys its rules, in the words of the rule: names, arity, types, attributes, control
// edges, acyclicity, colocation targets, collections that point into the graph. Run after every pass in tests
// and by `sluice-graph check`. Reads only.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace sluice::graph {

struct Violation {
  std::string node;  // "" for the graph as a whole
  std::string rule;  // what does not hold
};

/// Every violation, in node order; empty when the graph is sound.
std::vector<Violation> verify(const Graph& graph);
/// Throws InvalidArgument listing the first violations.
void require_valid(const Graph& graph);

}  // namespace sluice::graph
