#pragma once
// A case of the table as a graph: floats are fed, integers are constants as in people's graphs, and a loss
// that weighs every element of output 0 differently.

#include "graph/graph.h"
#include "runtime/session.h"
#include "tests/ops/op_case.h"

namespace sluice::optest {

struct CaseGraph {
  graph::Graph g;
  std::vector<graph::Output> inputs;
  graph::Node* node = nullptr;
  graph::Output loss;  // none where output 0 is not float or of unknown shape

  CaseGraph(const OpCase& c, const std::vector<Array>& values);
  /// Feeds for the inputs that are fed.
  std::vector<runtime::Feed> feeds(const std::vector<Array>& values) const;
  /// Gradients of the loss for the case's `gradient` inputs, slices made dense. Throws when there is none.
  std::vector<graph::Output> gradients(const OpCase& c);
};

}  // namespace sluice::optest
