#include "passes/emit.h"

namespace sluice::passes {

using graph::NameScope;

Node& Emit::node(std::string op, std::vector<Output> inputs, std::string name, AttrMap attrs) const {
  return g.add({.op = std::move(op),
                .name = std::move(name),
                .inputs = std::move(inputs),
                .attrs = std::move(attrs),
                .loc = loc});
}

Output Emit::op(std::string op, std::vector<Output> inputs, std::string name, AttrMap attrs) const {
  return node(std::move(op), std::move(inputs), std::move(name), std::move(attrs)).output();
}

Output Emit::constant(Literal value, std::string name) const {
  DType dtype = value.dtype();
  return op("Const", {}, std::move(name), {{"dtype", dtype}, {"value", std::move(value)}});
}

Output Emit::scalar(DType dtype, double value, std::string name) const {
  return constant(Literal::scalar<double>(value).cast(dtype), std::move(name));
}

Output Emit::i32(int32_t value, std::string name) const {
  return constant(Literal::scalar<int32_t>(value), std::move(name));
}

Output Emit::i32s(std::vector<int32_t> values, std::string name) const {
  return constant(Literal::vector<int32_t>(std::span<const int32_t>(values)), std::move(name));
}

Output Emit::shape(Output x, std::string name) const {
  const graph::Shape& s = x.shape();
  if (!s.fully_known()) return op("Shape", {x}, std::move(name));
  return i32s(std::vector<int32_t>(s.dims().begin(), s.dims().end()), std::move(name));
}

Output Emit::all_axes(Output x) const {
  if (x.shape().known_rank()) {
    std::vector<int32_t> axes(static_cast<size_t>(x.shape().rank()));
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int32_t>(i);
    return i32s(std::move(axes));
  }
  Output rank = op("Rank", {x});
  NameScope scope(g, "range");
  return op("Range", {i32(0, "start"), rank, i32(1, "delta")}, scope.scope());
}

Output Emit::ones_like(Output x, std::string name) const {
  NameScope scope(g, name);
  Output dims = shape(x, x.shape().fully_known() ? "Shape/shape_as_tensor" : "Shape");
  return op("Fill", {dims, scalar(x.dtype(), 1.0)}, scope.scope());
}

}  // namespace sluice::passes
