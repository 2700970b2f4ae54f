#pragma once
// dsl::Tensor: the author's handle to one output of a node, with operators. A value; it holds no state and
// lives as long as its graph. Building is for one thread. Operators add nodes in the open scopes, under
// TensorFlow's names.
//
//   Graph g;
//   Tensor x = placeholder(g, DType::kFloat, {-1, 784}, "x");
//   Tensor y = relu(matmul(x, w) + b);

#include <string>

#include "graph/grad.h"
#include "graph/graph.h"
#include "graph/scopes.h"

namespace sluice::dsl {

using graph::AttrMap;
using graph::DType;
using graph::Graph;
using graph::Literal;
using graph::Node;
using graph::Output;
using graph::Shape;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Output o) : o_(o) {}
  Tensor(Node& n) : o_{&n, 0} {}
  explicit operator bool() const { return static_cast<bool>(o_); }
  operator Output() const { return o_; }
  const Output& output() const { return o_; }
  Node& node() const { return *o_.node; }
  Graph& graph() const { return o_.node->graph(); }
  DType dtype() const { return o_.dtype(); }
  const Shape& shape() const { return o_.shape(); }
  std::string name() const { return o_.name(); }
  bool operator==(const Tensor&) const = default;

 private:
  Output o_;
};

}  // namespace sluice::dsl
