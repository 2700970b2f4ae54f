#pragma once
// What an op's gradient function works with. It sees the forward node and the gradients of its outputs, makes
// nodes (numbers never), and returns one gradient per forward input: none, a dense tensor, or IndexedSlices.
// The pass that calls these functions is passes/gradients.h; formulas are graph-and-training §2.9. One
// thread, the graph's builder.
//
//   .grad = [](Grad& g) { return Gradients{g.op("ReluGrad", {g.dy(), g.y()}), {}}; }

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/scopes.h"

namespace sluice::graph {

/// A sparse gradient: dense[indices[k]] += values[k] for every k, duplicates add (§2.8).
struct IndexedSlices {
  Output values, indices, dense_shape;  // dense_shape may be empty
  bool operator==(const IndexedSlices&) const = default;
};

/// None, dense or slices.
struct GradValue {
  Output dense;
  IndexedSlices slices;  // used when dense is empty and slices.values is set
  bool filler =
      false;  // zeros that stand for "no gradient came": terms that only multiply it can be left out

  GradValue() = default;
  GradValue(Output o) : dense(o) {}
  GradValue(IndexedSlices s) : slices(s) {}
  bool none() const { return !dense && !slices.values; }
  bool is_slices() const { return !dense && static_cast<bool>(slices.values); }
  bool operator==(const GradValue&) const = default;
};

class Grad {
 public:
  /// `needed`: one flag an input; empty means all are needed.
  Grad(Graph& graph, Node& node, std::vector<GradValue> dys, std::vector<bool> needed = {})
      : graph_(graph), node_(node), dys_(std::move(dys)), needed_(std::move(needed)) {}

  Graph& graph() const { return graph_; }
  Node& node() const { return node_; }
  Output x(int i = 0) const { return node_.input(i); }
  Output y(int i = 0) const { return node_.output(i); }
  int num_inputs() const { return node_.num_inputs(); }

  /// False when nothing asks for the gradient of input i: a gradient function may then return none for it.
  bool needs(int i) const { return needed_.empty() || needed_[static_cast<size_t>(i)]; }
  /// True when a gradient came for output i. dy(i) may exist without: zeros that fill the place.
  bool has_dy(int i = 0) const { return !raw_dy(i).none() && !raw_dy(i).filler; }
  /// The gradient of output i as a tensor; slices are made dense (once).
  Output dy(int i = 0);
  /// As it came.
  const GradValue& raw_dy(int i = 0) const { return dys_[static_cast<size_t>(i)]; }

  /// Output 0 of a new node. Missing type attrs follow from the inputs; name "" takes the op's type.
  Output op(std::string_view op, std::vector<Output> inputs, AttrMap attrs = {}, std::string name = {});
  Node& node_op(std::string_view op, std::vector<Output> inputs, AttrMap attrs = {}, std::string name = {});
  Output constant(Literal value, std::string name = "Const");
  Output constant_i32(std::vector<int32_t> values, std::string name = "Const");
  Output scalar_i32(int32_t value, std::string name = "Const");
  /// A scalar of the dtype of `like`.
  Output scalar_like(Output like, double value, std::string name = "Const");
  Output shape_of(Output x, std::string name = "Shape");
  Output zeros_like(Output x);

  /// Sums `g` over the axes where x was broadcast against y, and reshapes to x's shape; nothing when the
  /// static shapes are equal. For both operands of a binary op, with TF's node names (Shape, Shape_1,
  /// BroadcastGradientArgs, Sum …).
  std::pair<Output, Output> unbroadcast(Output gx, Output gy);

  template <class T>
  T attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

 private:
  Graph& graph_;
  Node& node_;
  std::vector<GradValue> dys_;
  std::vector<bool> needed_;
};

/// UnsortedSegmentSum of the slices; InvalidArgument "Tensor conversion requested for IndexedSlices without
/// dense_shape".
Output densify(Graph& graph, const IndexedSlices& slices);

}  // namespace sluice::graph
