#pragma once
// Values known while a graph is built: constants, and the small integer subgraphs that feed shapes (Shape,
// Pack, ConcatV2, StridedSlice, Range, arithmetic). An op opts in with OpDef::fold, which computes element by
// element and may know only some elements. Anything larger is the plan's business. Pure; reads the graph
// only.

#include <optional>

#include "graph/infer.h"

namespace sluice::graph {

class FoldContext {
 public:
  using PartialFn = std::function<std::optional<PartialInts>(int input)>;
  FoldContext(const Node& node, PartialFn input);

  const Node& node() const { return node_; }
  /// Shape of an input as the graph, or the plan being specialised, knows it.
  const Shape& input_shape(int i) const {
    return shapes_.empty() ? node_.input(i).shape() : shapes_[static_cast<size_t>(i)];
  }
  /// A plan knows more than the graph: these replace the graph's shapes (one per input).
  void use_shapes(std::vector<Shape> shapes) { shapes_ = std::move(shapes); }
  std::optional<PartialInts> input(int i) { return input_(i); }
  void set_output(int i, PartialInts value);
  std::vector<std::optional<PartialInts>>& outputs() { return outputs_; }

 private:
  const Node& node_;
  PartialFn input_;
  std::vector<Shape> shapes_;
  std::vector<std::optional<PartialInts>> outputs_;
};

/// The value of an output if it is a Const (through Identity) or an integer subgraph fully known by the fold
/// rules.
std::optional<Literal> constant_value(Output output);
/// What is known of an integer output's elements; nullopt when nothing is.
std::optional<PartialInts> partial_value(Output output);
/// The node that made the variable behind a resource handle; null when that can't be told from the graph.
const Node* variable_behind(Output handle);
/// Shape of the variable behind a resource handle; unknown when the variable is.
Shape handle_shape(Output handle);

}  // namespace sluice::graph
