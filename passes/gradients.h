#pragma once
// Inserts the gradient of ys with respect to xs into the graph, in TensorFlow's shape and under its names
// (graph-and-training §2.1–2.7). The new nodes are ordinary and visible in a graph file. One thread, the
// builder's.

#include <vector>

#include "graph/grad.h"
#include "graph/graph.h"

namespace sluice::passes {

enum class AggregationMethod { kAddN = 0, kExperimentalTree = 1, kExperimentalAccumulateN = 2 };
enum class UnconnectedGradients { kNone, kZero };

struct GradientOptions {
  std::vector<graph::GradValue> grad_ys;  // empty: ones; else one per y, none meaning ones
  std::string name = "gradients";
  bool colocate_gradients_with_ops = false;
  bool gate_gradients = false;
  AggregationMethod aggregation_method = AggregationMethod::kAddN;
  std::vector<graph::Output> stop_gradients;
  UnconnectedGradients unconnected_gradients = UnconnectedGradients::kNone;
  Loc loc = Loc::current();
};

/// One entry per x: sum over y of dy/dx, none where unconnected. xs may be variable handles. Throws
/// InvalidArgument that lists *every* op on the path without a gradient, with the author's lines.
std::vector<graph::GradValue> gradients(const std::vector<graph::Output>& ys,
                                        const std::vector<graph::Output>& xs,
                                        const GradientOptions& options = {});

/// Why x gets no gradient from ys: the ops between x and ys through which no gradient flows (no gradient by
/// nature, or an output of integer, bool or string type), nearest to ys first. Empty when no path leads from
/// x to ys at all.
std::vector<graph::Node*> cutting_ops(const std::vector<graph::Output>& ys, graph::Output x);

}  // namespace sluice::passes
