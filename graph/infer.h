#pragma once
// Shape inference. An op's rule sees its inputs' shapes, what is known of their values, and its attributes,
// and states the outputs' shapes. The same rule runs when a node is made (values known where constants feed
// it) and when a plan is specialised (everything known), so a rule never looks at the graph itself. Rules
// throw through `fail`, which names the node, the op and the input shapes.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sluice::graph {

/// A small integer tensor of which each element may be unknown; what shape-like inputs carry.
struct PartialInts {
  bool scalar = false;
  std::vector<std::optional<int64_t>> values;
  /// Dims of a tensor of rank 2 and more (paddings, say; values are row-major); empty for scalars and
  /// vectors.
  Dims higher;
  /// {} for a scalar, {n} for a vector, `higher` otherwise.
  Dims dims() const {
    return scalar ? Dims{} : higher.empty() ? Dims{static_cast<int64_t>(values.size())} : higher;
  }
  bool fully_known() const;
  /// -1 for unknown entries.
  std::vector<int64_t> with_unknowns() const;
};

class InferContext {
 public:
  using ValueFn = std::function<std::optional<Literal>(int input)>;
  using PartialFn = std::function<std::optional<PartialInts>(int input)>;
  using HandleShapeFn = std::function<Shape(int input)>;

  InferContext(const Node& node, std::vector<Shape> inputs, ValueFn value, PartialFn partial,
               HandleShapeFn handle);

  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Shape& output(int i) const { return outputs_[static_cast<size_t>(i)]; }
  void set_output(int i, Shape shape) { outputs_[static_cast<size_t>(i)] = std::move(shape); }

  /// The whole value of an input where it is a constant (or known to the plan).
  std::optional<Literal> value(int i);
  /// Its elements where it is integer and at least partly known.
  std::optional<PartialInts> partial(int i);
  /// A 1-D integer input read as a shape: -1 or unknown entries become unknown dimensions; unknown rank if
  /// nothing is known but the length decides the rank where that is known.
  Shape shape_value(int i);
  /// Shape of the variable behind a resource handle input; unknown rank when not known.
  Shape handle_shape(int i) { return handle_ ? handle_(i) : Shape(); }
  /// Inputs whose value was asked for and not known: a plan specialises these by value when a shape stays
  /// unknown.
  const std::vector<int>& unknown_values_asked() const { return asked_; }

  template <class T>
  T attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

  /// Requires a rank and returns the shape with it (unknown rank becomes all-unknown dims); fails otherwise.
  Shape with_rank(int i, int rank) const;
  Shape with_rank_at_least(int i, int rank) const;
  /// merge that fails with this context's message ("Dimensions must be equal, but are 3 and 4 …").
  Shape merge(const Shape& a, const Shape& b) const;
  int64_t merge_dim(int64_t a, int64_t b) const;
  /// Normalises an axis into [0, rank) or fails.
  int axis(int64_t axis, int rank) const;

  /// Throws InvalidArgument: "<why> for '<node>' (op: '<op>') with input shapes: [..], [..]." with the
  /// author's line.
  [[noreturn]] void fail(const std::string& why) const;

  std::vector<Shape>& outputs() { return outputs_; }

 private:
  const Node& node_;
  std::vector<Shape> inputs_, outputs_;
  ValueFn value_;
  PartialFn partial_;
  HandleShapeFn handle_;
  std::vector<int> asked_;
};

// Rules shared by many ops.
void same_shape(InferContext& c);        // output 0 = input 0
void merge_all_inputs(InferContext& c);  // all inputs merge; output 0 = the result (AddN)
/// NumPy broadcasting; fails with this context's message ("Dimensions must be equal, but are 3 and 4 …").
Shape broadcast(InferContext& c, const Shape& a, const Shape& b);
void broadcast_binary(InferContext& c);  // NumPy broadcasting of inputs 0 and 1
void scalar_output(InferContext& c);     // every output is a scalar
void no_outputs(InferContext& c);        // nothing to state
void reduction_shape(InferContext& c);   // input 1 = axes, attr keep_dims (or keepdims)
void unknown_outputs(InferContext& c);   // rank unknown
void matrix_multiply(InferContext& c);   // MatMul with transpose_a/b

/// Padding of one spatial dimension (§2.11).
struct Window {
  int64_t out = 0, before = 0, after = 0;
};
/// in may be -1 (unknown): out is then -1. padding: "SAME", "VALID", "EXPLICIT" (before/after given). Throws
/// InvalidArgument "Computed output size would be negative".
Window window(int64_t in, int64_t k, int64_t stride, int64_t dilation, std::string_view padding,
              int64_t before = 0, int64_t after = 0);

/// The resolved form of StridedSlice's begin/end/strides/masks against an input shape (§2.15).
struct StridedSliceSpec {
  std::vector<int64_t> begin, end, stride;  // one per input dimension, canonical
  Dims processing_dims;                     // lengths per input dimension before shrink/new axes
  Dims final_dims;                          // -1 where the input dim was unknown
};
StridedSliceSpec resolve_strided_slice(const Shape& input, const PartialInts& begin, const PartialInts& end,
                                       const PartialInts& strides, int64_t begin_mask, int64_t end_mask,
                                       int64_t ellipsis_mask, int64_t new_axis_mask,
                                       int64_t shrink_axis_mask);

}  // namespace sluice::graph
