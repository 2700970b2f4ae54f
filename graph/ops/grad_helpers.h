#pragma once
// Small node builders that gradient functions compose. They give nodes the names that TensorFlow's Python
// layer gives them ("mul", "truediv", "Sum/reduction_indices" …), so that a graph file reads the same. All of
// them make nodes under the open scopes of the graph and run on its thread.

#include <optional>
#include <string_view>
#include <vector>

#include "graph/grad.h"

namespace sluice::graph::ops {

/// None for every input: an op that has a gradient function but passes nothing on (Floor, ArgMax).
Gradients no_gradient(Grad& g);

/// x, or its conjugate when complex.
Output conj(Grad& g, Output x);

// The overloaded operators of tf.Tensor.
Output add(Grad& g, Output x, Output y);
Output sub(Grad& g, Output x, Output y);
Output mul(Grad& g, Output x, Output y);
Output truediv(Grad& g, Output x, Output y);
Output neg(Grad& g, Output x);
/// op(value, x) with the constant `name/x`, or op(x, value) with the constant `name/y`.
Output with_scalar_left(Grad& g, std::string_view op, std::string_view name, double value, Output x);
Output with_scalar_right(Grad& g, std::string_view op, std::string_view name, Output x, double value);

/// Reduction over constant axes ("<name>/reduction_indices", a vector) with the node called `op`.
Output reduce(Grad& g, std::string_view op, Output x, std::vector<int32_t> axes, bool keep_dims);
Output reduce_sum(Grad& g, Output x, Output axes, bool keep_dims);
/// Sum over the last axis, kept with length 1; the axis is a scalar constant as in tf.reduce_sum(x, -1).
Output sum_last_axis(Grad& g, Output x);

Output reshape(Grad& g, Output x, Output shape);
/// Reshape to a constant shape, "Reshape/shape".
Output reshape_to(Grad& g, Output x, const std::vector<int32_t>& shape);
Output cast(Grad& g, Output x, DType type);
Output expand_dims(Grad& g, Output x, int32_t axis);
/// ones of x's shape and type.
Output ones_like(Grad& g, Output x);
/// Rank of x: a constant where known.
Output rank_of(Grad& g, Output x);
/// x[begin:end] of a vector; no end means to the end. With `shrink`, x[begin] as a scalar.
Output slice_vector(Grad& g, Output x, int32_t begin, std::optional<int32_t> end, bool shrink = false);
/// ConcatV2 along axis 0.
Output concat0(Grad& g, std::vector<Output> parts);
/// Elements of params along axis 0.
Output gather0(Grad& g, Output params, Output indices);
/// [0, 1, …, limit).
Output range_to(Grad& g, Output limit);

/// A shape that is known while building, or a value of the graph.
struct ShapeValue {
  std::optional<std::vector<int32_t>> known;
  Output value;  // when not known
};
/// Shape of reducing a tensor of `input_shape` (a value) over `axes` with lengths kept: known where both are,
/// else computed in the graph as TensorFlow's `reduced_shape` does.
ShapeValue kept_dims_shape(Grad& g, Output input_shape, Output axes);
Output reshape_to(Grad& g, Output x, const ShapeValue& shape);
/// Sums `grad`, which has the shape of `full`, over the axes along which x was broadcast to `full`, and gives
/// it x's shape.
Output unbroadcast_to(Grad& g, Output grad, Output x, Output full);

/// The listed attrs of the forward node, for passing on.
AttrMap copy_attrs(Grad& g, std::initializer_list<std::string_view> names);

}  // namespace sluice::graph::ops
