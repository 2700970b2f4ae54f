#pragma once
// A graph as Graphviz reads it: nodes named and coloured by what they do, data edges with shapes, control
// edges dashed.

#include <string>

#include "graph/graph.h"

namespace sluice::tools {

std::string to_dot(const graph::Graph& graph);

}  // namespace sluice::tools
