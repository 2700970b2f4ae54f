#include "graph/grad.h"

#include <algorithm>

#include "graph/fold.h"
#include "graph/support/check.h"
#include "graph/support/log.h"

namespace sluice::graph {

Node& Grad::node_op(std::string_view op, std::vector<Output> inputs, AttrMap attrs, std::string name) {
  return graph_.add({.op = std::string(op),
                     .name = std::move(name),
                     .inputs = std::move(inputs),
                     .attrs = std::move(attrs),
                     .loc = node_.loc()});
}

Output Grad::op(std::string_view op, std::vector<Output> inputs, AttrMap attrs, std::string name) {
  return node_op(op, std::move(inputs), std::move(attrs), std::move(name)).output();
}

Output Grad::dy(int i) {
  GradValue& g = dys_[static_cast<size_t>(i)];
  SLUICE_CHECK(!g.none(), "gradient of output ", i, " of '", node_.name(),
               "' was asked for and there is none");
  if (g.is_slices()) g = densify(graph_, g.slices);
  return g.dense;
}

Output Grad::constant(Literal value, std::string name) {
  const DType t = value.dtype();
  return op("Const", {}, {{"value", std::move(value)}, {"dtype", t}}, std::move(name));
}

Output Grad::constant_i32(std::vector<int32_t> values, std::string name) {
  return constant(Literal::vector<int32_t>(std::span<const int32_t>(values)), std::move(name));
}

Output Grad::scalar_i32(int32_t value, std::string name) {
  return constant(Literal::scalar(value), std::move(name));
}

Output Grad::scalar_like(Output like, double value, std::string name) {
  return constant(Literal::scalar(value).cast(like.dtype()), std::move(name));
}

Output Grad::shape_of(Output x, std::string name) {
  const Shape& s = x.shape();
  if (!s.fully_known() ||
      std::any_of(s.dims().begin(), s.dims().end(), [](int64_t d) { return d > INT32_MAX; }))
    return op("Shape", {x}, {}, std::move(name));
  return constant_i32({s.dims().begin(), s.dims().end()}, std::move(name));
}
Output Grad::zeros_like(Output x) { return op("ZerosLike", {x}, {}, "zeros_like"); }

namespace {

// Axes along which each operand was broadcast against the other; nothing when that depends on values.
struct BroadcastAxes {
  std::vector<int32_t> x, y;
};
std::optional<BroadcastAxes> broadcast_axes(const Shape& x, const Shape& y) {
  if (!x.known_rank() || !y.known_rank()) return std::nullopt;
  const int rank = std::max(x.rank(), y.rank());
  BroadcastAxes axes;
  for (int i = 0; i < rank; ++i) {
    const int64_t dx = i < rank - x.rank() ? 1 : x.dim(i - (rank - x.rank()));
    const int64_t dy = i < rank - y.rank() ? 1 : y.dim(i - (rank - y.rank()));
    if (dx == 1 && dy != 1) {
      axes.x.push_back(i);
    } else if (dy == 1 && dx != 1) {
      axes.y.push_back(i);
    } else if (dx < 0 || dy < 0) {
      return std::nullopt;
    }
  }
  return axes;
}

}  // namespace

std::pair<Output, Output> Grad::unbroadcast(Output gx, Output gy) {
  const Output a = x(0), b = x(1);
  if (a.shape().fully_known() && a.shape() == b.shape()) return {gx, gy};
  const Output sx = shape_of(a), sy = shape_of(b);
  if (const auto axes = broadcast_axes(a.shape(), b.shape())) {
    auto back = [&](Output g, const std::vector<int32_t>& reduced, Output operand, Output other,
                    Output shape) {
      if (!g || (reduced.empty() && operand.shape().rank() >= other.shape().rank())) return g;
      Output sum;
      {
        NameScope scope(graph_, "Sum");
        const Output indices = constant_i32(reduced, "reduction_indices");
        sum = op("Sum", {g, indices}, {{"keep_dims", true}}, scope.scope());
      }
      return op("Reshape", {sum, shape});
    };
    const Output rx = back(gx, axes->x, a, b, sx);
    return {rx, back(gy, axes->y, b, a, sy)};
  }
  Node& axes = node_op("BroadcastGradientArgs", {sx, sy});
  auto back = [&](Output g, int which, Output shape) {
    if (!g) return g;
    return op("Reshape", {op("Sum", {g, axes.output(which)}, {{"keep_dims", true}}), shape});
  };
  const Output rx = back(gx, 0, sx);
  return {rx, back(gy, 1, sy)};
}

Output densify(Graph& graph, const IndexedSlices& s) {
  SLUICE_REQUIRE(s.dense_shape, Code::kInvalidArgument,
                 "Tensor conversion requested for IndexedSlices without dense_shape: ", s.values.name());
  const Loc loc = s.values.node->loc();
  auto known = constant_value(s.dense_shape);
  int64_t elements = -1;
  if (known) elements = num_elements(known->to_int64s());
  if (elements < 0 || elements >= 100'000'000)
    log_warning("Converting sparse IndexedSlices to a dense Tensor of ",
                elements < 0 ? "unknown shape" : cat(elements, " elements"),
                ". This may consume a large amount of memory.");
  auto const_vec = [&](int32_t v, const char* name) {
    return graph
        .add({.op = "Const",
              .name = name,
              .attrs = {{"value", Literal::vector<int32_t>({v})}, {"dtype", DType::kInt32}},
              .loc = loc})
        .output();
  };
  Output rows;
  {
    NameScope scope(graph, "strided_slice");
    const Output begin = const_vec(0, "stack"), end = const_vec(1, "stack_1"),
                 stride = const_vec(1, "stack_2");
    rows = graph
               .add({.op = "StridedSlice",
                     .name = scope.scope(),
                     .inputs = {s.dense_shape, begin, end, stride},
                     .attrs = {{"shrink_axis_mask", 1}},
                     .loc = loc})
               .output();
  }
  return graph.add({.op = "UnsortedSegmentSum", .inputs = {s.values, s.indices, rows}, .loc = loc}).output();
}

}  // namespace sluice::graph
