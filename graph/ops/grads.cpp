#include "graph/ops/grads.h"

#include <algorithm>

#include "graph/scopes.h"

namespace sluice::graph::ops {

Gradients pass_gradient(Grad& g) {
  Gradients r(static_cast<size_t>(g.num_inputs()));
  const int n = std::min(g.num_inputs(), g.node().num_outputs());
  for (int i = 0; i < n; ++i) r[static_cast<size_t>(i)] = g.raw_dy(i);
  return r;
}

Gradients reshape_gradient(Grad& g) {
  Gradients r(static_cast<size_t>(g.num_inputs()));
  const Output dy = g.dy();
  r[0] = g.op("Reshape", {dy, shape_of(g, g.x())});
  return r;
}

Output dy_or_zeros(Grad& g, int i) { return !g.raw_dy(i).none() ? g.dy(i) : g.zeros_like(g.y(i)); }

Output shape_of(Grad& g, Output x, DType type, std::string name) {
  const Shape& s = x.shape();
  if (!s.fully_known()) return g.op("Shape", {x}, {{"out_type", type}}, std::move(name));
  return g.constant(Literal::vector<int64_t>(std::span<const int64_t>(s.dims())).cast(type), std::move(name));
}

Output size_of(Grad& g, Output x) {
  const auto n = x.shape().elements();
  return n ? g.scalar_i32(static_cast<int32_t>(*n), "Size") : g.op("Size", {x});
}

Output concat(Grad& g, std::vector<Output> values, int32_t axis) {
  NameScope scope(g.graph(), "concat");
  values.push_back(g.scalar_i32(axis, "axis"));
  return g.op("ConcatV2", std::move(values), {}, scope.scope());
}

Output stack(Grad& g, std::vector<Output> values, int64_t axis, std::string name) {
  return g.op("Pack", std::move(values), {{"axis", axis}}, std::move(name));
}

Output with_constant(Grad& g, const char* op, const char* name, Output x, int32_t y) {
  NameScope scope(g.graph(), name);
  const Output c = g.constant(Literal::scalar<int32_t>(y).cast(x.dtype()), "y");
  return g.op(op, {x, c}, {}, scope.scope());
}

Output range_by(Grad& g, Output limit, int32_t delta) {
  NameScope scope(g.graph(), "range");
  const Output start = g.scalar_i32(0, "start"), step = g.scalar_i32(delta, "delta");
  return g.op("Range", {start, limit, step}, {}, scope.scope());
}

Output transpose(Grad& g, Output x, std::vector<int32_t> perm) {
  NameScope scope(g.graph(), "transpose");
  const Output p = g.constant_i32(std::move(perm), "perm");
  return g.op("Transpose", {x, p}, {}, scope.scope());
}

}  // namespace sluice::graph::ops
