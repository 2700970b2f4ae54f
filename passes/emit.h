#pragma once
// How passes write nodes: short calls over Graph::add that keep the author's line and TensorFlow's helper
// names. Values only, no state beyond the graph; the builder's thread.
//
//   Emit e{g, loc};
//   Output twice = e.op("Mul", {x, e.scalar(x.dtype(), 2.0, "mul/y")}, "mul");

#include <string>
#include <vector>

#include "graph/grad.h"
#include "graph/graph.h"
#include "graph/scopes.h"

namespace sluice::passes {

using graph::AttrMap;
using graph::DType;
using graph::GradValue;
using graph::Graph;
using graph::Literal;
using graph::Node;
using graph::Output;

struct Emit {
  Graph& g;
  Loc loc = {};

  /// name "": the op's type; ending in '/': exactly that name.
  Node& node(std::string op, std::vector<Output> inputs, std::string name = {}, AttrMap attrs = {}) const;
  /// Output 0 of `node`.
  Output op(std::string op, std::vector<Output> inputs, std::string name = {}, AttrMap attrs = {}) const;
  Output constant(Literal value, std::string name = "Const") const;
  /// A scalar of any numeric dtype.
  Output scalar(DType dtype, double value, std::string name = "Const") const;
  Output i32(int32_t value, std::string name = "Const") const;
  Output i32s(std::vector<int32_t> values, std::string name = "Const") const;
  /// tf.shape: a Const where the shape is fully known, else a Shape op; both under `name`.
  Output shape(Output x, std::string name = "Shape") const;
  /// Axes 0 … rank-1 as TensorFlow makes them for `axis=None`: a Const, or Rank and Range where the rank is
  /// unknown.
  Output all_axes(Output x) const;
  /// ones_like under `name` (Shape, Const, Fill inside its scope).
  Output ones_like(Output x, std::string name = "ones_like") const;
};

}  // namespace sluice::passes
