#include "graph/ops/grad_helpers.h"

#include <algorithm>

#include "graph/fold.h"
#include "graph/support/check.h"

namespace sluice::graph::ops {
namespace {

std::vector<int32_t> to_i32(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

// Axes along which an operand of shape x was broadcast to shape full; nothing when that depends on values.
std::optional<std::vector<int32_t>> broadcast_axes(const Shape& x, const Shape& full) {
  if (!x.known_rank() || !full.known_rank() || x.rank() > full.rank()) return std::nullopt;
  std::vector<int32_t> axes;
  const int lead = full.rank() - x.rank();
  for (int i = 0; i < full.rank(); ++i) {
    const int64_t dx = i < lead ? 1 : x.dim(i - lead);
    const int64_t df = full.dim(i);
    if (dx == 1 && df != 1) {
      axes.push_back(i);
    } else if (dx == kUnknownDim || df == kUnknownDim) {
      return std::nullopt;
    }
  }
  return axes;
}

}  // namespace

Gradients no_gradient(Grad& g) { return Gradients(static_cast<size_t>(g.num_inputs())); }

Output conj(Grad& g, Output x) { return is_complex(x.dtype()) ? g.op("Conj", {x}) : x; }

Output add(Grad& g, Output x, Output y) { return g.op("AddV2", {x, y}, {}, "add"); }
Output sub(Grad& g, Output x, Output y) { return g.op("Sub", {x, y}, {}, "sub"); }
Output mul(Grad& g, Output x, Output y) { return g.op("Mul", {x, y}, {}, "mul"); }
Output truediv(Grad& g, Output x, Output y) { return g.op("RealDiv", {x, y}, {}, "truediv"); }
Output neg(Grad& g, Output x) { return g.op("Neg", {x}); }

Output with_scalar_left(Grad& g, std::string_view op, std::string_view name, double value, Output x) {
  NameScope scope(g.graph(), name);
  const Output c = g.scalar_like(x, value, "x");
  return g.op(op, {c, x}, {}, scope.scope());
}

Output with_scalar_right(Grad& g, std::string_view op, std::string_view name, Output x, double value) {
  NameScope scope(g.graph(), name);
  const Output c = g.scalar_like(x, value, "y");
  return g.op(op, {x, c}, {}, scope.scope());
}

Output reduce(Grad& g, std::string_view op, Output x, std::vector<int32_t> axes, bool keep_dims) {
  NameScope scope(g.graph(), op);
  const Output indices = g.constant_i32(std::move(axes), "reduction_indices");
  return g.op(op, {x, indices}, {{"keep_dims", keep_dims}}, scope.scope());
}

Output reduce_sum(Grad& g, Output x, Output axes, bool keep_dims) {
  return g.op("Sum", {x, axes}, {{"keep_dims", keep_dims}});
}

Output sum_last_axis(Grad& g, Output x) {
  NameScope scope(g.graph(), "Sum");
  const Output axis = g.scalar_i32(-1, "reduction_indices");
  return g.op("Sum", {x, axis}, {{"keep_dims", true}}, scope.scope());
}

Output reshape(Grad& g, Output x, Output shape) { return g.op("Reshape", {x, shape}); }

Output reshape_to(Grad& g, Output x, const std::vector<int32_t>& shape) {
  NameScope scope(g.graph(), "Reshape");
  const Output s = g.constant_i32(shape, "shape");
  return g.op("Reshape", {x, s}, {}, scope.scope());
}

Output cast(Grad& g, Output x, DType type) {
  return x.dtype() == type ? x : g.op("Cast", {x}, {{"DstT", type}});
}

Output expand_dims(Grad& g, Output x, int32_t axis) {
  NameScope scope(g.graph(), "ExpandDims");
  const Output dim = g.scalar_i32(axis, "dim");
  return g.op("ExpandDims", {x, dim}, {}, scope.scope());
}

Output ones_like(Grad& g, Output x) {
  NameScope scope(g.graph(), "ones_like");
  const Output shape = g.shape_of(x);
  const Output one = g.scalar_like(x, 1.0);
  return g.op("Fill", {shape, one}, {}, scope.scope());
}

Output rank_of(Grad& g, Output x) {
  if (x.shape().known_rank()) return g.scalar_i32(x.shape().rank(), "Rank");
  return g.op("Rank", {x});
}

Output slice_vector(Grad& g, Output x, int32_t begin, std::optional<int32_t> end, bool shrink) {
  NameScope scope(g.graph(), "strided_slice");
  const Output from = g.constant_i32({begin}, "stack");
  const Output to = g.constant_i32({shrink ? begin + 1 : end.value_or(0)}, "stack_1");
  const Output step = g.constant_i32({1}, "stack_2");
  const bool open_end = !shrink && !end;
  // As Python writes x[:end]: a start of 0 is a masked one.
  AttrMap attrs{{"begin_mask", (begin == 0 && !shrink) ? 1 : 0},
                {"end_mask", open_end ? 1 : 0},
                {"ellipsis_mask", 0},
                {"new_axis_mask", 0},
                {"shrink_axis_mask", shrink ? 1 : 0}};
  return g.op("StridedSlice", {x, from, to, step}, std::move(attrs), scope.scope());
}

Output concat0(Grad& g, std::vector<Output> parts) {
  NameScope scope(g.graph(), "concat");
  parts.push_back(g.scalar_i32(0, "axis"));
  return g.op("ConcatV2", std::move(parts), {}, scope.scope());
}

Output gather0(Grad& g, Output params, Output indices) {
  NameScope scope(g.graph(), "GatherV2");
  const Output axis = g.scalar_i32(0, "axis");
  return g.op("GatherV2", {params, indices, axis}, {}, scope.scope());
}

Output range_to(Grad& g, Output limit) {
  NameScope scope(g.graph(), "range");
  const Output start = g.scalar_i32(0, "start");
  const Output delta = g.scalar_i32(1, "delta");
  return g.op("Range", {start, limit, delta}, {}, scope.scope());
}

ShapeValue kept_dims_shape(Grad& g, Output input_shape, Output axes) {
  const auto shape = partial_value(input_shape);
  const auto known_axes = partial_value(axes);
  if (shape && shape->fully_known() && known_axes && known_axes->fully_known()) {
    std::vector<int32_t> kept = to_i32(shape->with_unknowns());
    const auto rank = static_cast<int64_t>(kept.size());
    for (int64_t axis : known_axes->with_unknowns()) {
      if (axis < 0) axis += rank;
      SLUICE_REQUIRE(axis >= 0 && axis < rank, Code::kInvalidArgument, "Invalid reduction dimension ", axis,
                     " for input with ", rank, " dimensions, in the gradient of '", g.node().name(), "'");
      kept[static_cast<size_t>(axis)] = 1;
    }
    return {std::move(kept), {}};
  }
  input_shape = cast(g, input_shape, DType::kInt32);
  axes = cast(g, axes, DType::kInt32);
  const Output rank = input_shape.shape().known_rank() && input_shape.shape().known_dim(0)
                          ? g.scalar_i32(static_cast<int32_t>(input_shape.shape().dim(0)), "Size")
                          : g.op("Size", {input_shape});
  const Output wrapped = g.op("FloorMod", {add(g, axes, rank), rank}, {}, "mod");
  const Output axes_shape = g.shape_of(wrapped);
  const Output all = range_to(g, rank);
  Output ones;
  {
    NameScope scope(g.graph(), "ones");
    const Output one = g.scalar_i32(1);
    ones = g.op("Fill", {axes_shape, one}, {}, scope.scope());
  }
  return {std::nullopt, g.op("DynamicStitch", {all, wrapped, input_shape, ones}, {{"N", 2}})};
}

Output reshape_to(Grad& g, Output x, const ShapeValue& shape) {
  return shape.known ? reshape_to(g, x, *shape.known) : reshape(g, x, shape.value);
}

Output unbroadcast_to(Grad& g, Output grad, Output x, Output full) {
  const Shape &sx = x.shape(), &sf = full.shape();
  if (sx.fully_known() && sf.fully_known() && sx == sf) return grad;
  const Output shape = g.shape_of(x);
  const auto axes = broadcast_axes(sx, sf);
  if (axes && axes->empty() && sx.rank() == sf.rank()) return grad;
  if (axes) return reshape(g, reduce(g, "Sum", grad, *axes, true), shape);
  const Output full_shape = g.shape_of(full);
  Node& args = g.node_op("BroadcastGradientArgs", {shape, full_shape});
  return reshape(g, reduce_sum(g, grad, args.output(0), true), shape);
}

AttrMap copy_attrs(Grad& g, std::initializer_list<std::string_view> names) {
  AttrMap attrs;
  for (std::string_view name : names)
    if (const AttrValue* value = g.node().find_attr(name)) attrs.emplace(std::string(name), *value);
  return attrs;
}

}  // namespace sluice::graph::ops
