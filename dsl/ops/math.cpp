#include "dsl/ops/math.h"

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/require.h"
#include "passes/emit.h"

namespace sluice::dsl {

namespace {

Tensor binary(const char* op, const char* fallback, const Operand& x, const Operand& y,
              const std::string& name, Loc loc) {
  Call c(graph_of({&x, &y}), name, fallback, loc);
  Output a = c.in(x, "x", y.dtype());
  Output b = c.in(y, "y", x.dtype());
  return c.make(op, {a, b});
}

Tensor unary(const char* op, const Operand& x, const std::string& name, Loc loc) {
  Call c(graph_of({&x}), name, op, loc);
  return c.make(op, {c.in(x, "x")});
}

Tensor reduce(const char* op, const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  Graph& g = graph_of({&x});
  if (!axis.list) {
    Tensor t = x.is_variable() && !x.shape().known_rank() ? x.tensor() : Tensor();
    // TensorFlow makes the axes beside the reduction, before it.
    Output axes;
    if (x.shape().known_rank()) {
      std::vector<int32_t> all;
      for (int i = 0; i < x.shape().rank(); ++i) all.push_back(i);
      axes = passes::Emit{g, loc}.i32s(all);
    } else {
      axes = passes::Emit{g, loc}.all_axes(t ? t.output() : x.tensor().output());
    }
    Call c(g, o.name, op, loc);
    return c.make(op, {c.in(t ? Operand(t) : x, "input"), axes}, {{"keep_dims", o.keepdims}});
  }
  Call c(g, o.name, op, loc);
  Output in = c.in(x, "input");
  Output axes =
      axis.scalar ? c.i32(axis.list->front(), "reduction_indices") : c.i32s(*axis.list, "reduction_indices");
  return c.make(op, {in, axes}, {{"keep_dims", o.keepdims}});
}

}  // namespace

Tensor add(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("AddV2", "Add", x, y, name, loc);
}
Tensor subtract(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Sub", "Sub", x, y, name, loc);
}
Tensor multiply(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Mul", "Mul", x, y, name, loc);
}
Tensor divide(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  Call c(graph_of({&x, &y}), name, "truediv", loc);
  Output a = c.in(x, "x", y.dtype());
  Output b = c.in(y, "y", x.dtype());
  if (graph::is_integer(a.dtype())) {
    // Python's `/`: float32 holds 8- and 16-bit integers exactly, the others become float64.
    DType wide = graph::dtype_size(a.dtype()) <= 2 ? DType::kFloat : DType::kDouble;
    a = c.inner("Cast", {a}, {{"DstT", wide}}).output();
    b = c.inner("Cast", {b}, {{"DstT", wide}}).output();
  }
  return c.make("RealDiv", {a, b});
}
Tensor div_no_nan(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("DivNoNan", "div_no_nan", x, y, name, loc);
}
Tensor floordiv(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("FloorDiv", "floordiv", x, y, name, loc);
}
Tensor floormod(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("FloorMod", "FloorMod", x, y, name, loc);
}
Tensor pow(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Pow", "Pow", x, y, name, loc);
}
Tensor maximum(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Maximum", "Maximum", x, y, name, loc);
}
Tensor minimum(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Minimum", "Minimum", x, y, name, loc);
}
Tensor squared_difference(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("SquaredDifference", "SquaredDifference", x, y, name, loc);
}

Tensor negative(const Operand& x, const std::string& name, Loc loc) { return unary("Neg", x, name, loc); }
Tensor square(const Operand& x, const std::string& name, Loc loc) { return unary("Square", x, name, loc); }
Tensor sqrt(const Operand& x, const std::string& name, Loc loc) { return unary("Sqrt", x, name, loc); }
Tensor rsqrt(const Operand& x, const std::string& name, Loc loc) { return unary("Rsqrt", x, name, loc); }
Tensor exp(const Operand& x, const std::string& name, Loc loc) { return unary("Exp", x, name, loc); }
Tensor log(const Operand& x, const std::string& name, Loc loc) { return unary("Log", x, name, loc); }
Tensor log1p(const Operand& x, const std::string& name, Loc loc) { return unary("Log1p", x, name, loc); }
Tensor abs(const Operand& x, const std::string& name, Loc loc) { return unary("Abs", x, name, loc); }
Tensor sign(const Operand& x, const std::string& name, Loc loc) { return unary("Sign", x, name, loc); }
Tensor floor(const Operand& x, const std::string& name, Loc loc) { return unary("Floor", x, name, loc); }
Tensor ceil(const Operand& x, const std::string& name, Loc loc) { return unary("Ceil", x, name, loc); }
Tensor cos(const Operand& x, const std::string& name, Loc loc) { return unary("Cos", x, name, loc); }
Tensor tanh(const Operand& x, const std::string& name, Loc loc) { return unary("Tanh", x, name, loc); }
Tensor sigmoid(const Operand& x, const std::string& name, Loc loc) { return unary("Sigmoid", x, name, loc); }

Tensor equal(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Equal", "Equal", x, y, name, loc);
}
Tensor not_equal(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("NotEqual", "NotEqual", x, y, name, loc);
}
Tensor less(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Less", "Less", x, y, name, loc);
}
Tensor less_equal(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("LessEqual", "LessEqual", x, y, name, loc);
}
Tensor greater(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("Greater", "Greater", x, y, name, loc);
}
Tensor greater_equal(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("GreaterEqual", "GreaterEqual", x, y, name, loc);
}
Tensor logical_and(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("LogicalAnd", "LogicalAnd", x, y, name, loc);
}
Tensor logical_or(const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  return binary("LogicalOr", "LogicalOr", x, y, name, loc);
}
Tensor logical_not(const Operand& x, const std::string& name, Loc loc) {
  return unary("LogicalNot", x, name, loc);
}

Tensor reduce_sum(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("Sum", x, axis, o, loc);
}
Tensor reduce_mean(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("Mean", x, axis, o, loc);
}
Tensor reduce_max(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("Max", x, axis, o, loc);
}
Tensor reduce_min(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("Min", x, axis, o, loc);
}
Tensor reduce_prod(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("Prod", x, axis, o, loc);
}
Tensor reduce_all(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("All", x, axis, o, loc);
}
Tensor reduce_any(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  return reduce("Any", x, axis, o, loc);
}

Tensor argmax(const Operand& x, int axis, const std::string& name, DType output_type, Loc loc) {
  Call c(graph_of({&x}), name, "ArgMax", loc);
  Output in = c.in(x, "input");
  return c.make("ArgMax", {in, c.i32(axis, "dimension")}, {{"output_type", output_type}});
}

// With m = max |x| taken as a constant (and 1 where it is 0 or not finite):
//   norm = m · sqrt(Σ (x/m)²),  d norm/dx = x / norm; the root is taken of 1 where the sum is 0.
Tensor norm(const Operand& x, const Axes& axis, const ReduceOptions& o, Loc loc) {
  Call c(graph_of({&x}), o.name, "norm", loc);
  Tensor t = c.in(x, "tensor");
  ReduceOptions keep{.keepdims = true};
  Tensor top = stop_gradient(reduce_max(abs(t, {}, loc), axis, keep, loc), {}, loc);
  Tensor one = ones_like(top, {}, loc);
  // top - top is 0 only for a finite maximum.
  Tensor usable =
      logical_and(greater(top, 0.0, {}, loc), equal(subtract(top, top, "sub", loc), 0.0, {}, loc), {}, loc);
  Tensor m = where(usable, top, one, {}, loc);
  Tensor sum = reduce_sum(square(divide(t, m, {}, loc), {}, loc), axis, keep, loc);
  Tensor positive = greater(sum, 0.0, {}, loc);
  Tensor root = where(positive, sqrt(where(positive, sum, one, {}, loc), {}, loc), sum, {}, loc);
  Tensor scaled = multiply(m, root, "mul", loc);
  if (o.keepdims) return c.make("Identity", {scaled});
  std::vector<int64_t> dims;
  if (axis.list) dims = *axis.list;
  return c.make("Squeeze", {scaled}, {{"squeeze_dims", dims}});
}

Tensor add_n(const std::vector<Tensor>& inputs, const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !inputs.empty(), Code::kInvalidArgument,
                    "inputs must be a list of at least one Tensor with the same dtype and shape");
  Graph& g = inputs[0].graph();
  std::vector<Output> in(inputs.begin(), inputs.end());
  if (in.size() == 1) return name.empty() ? inputs[0] : identity(inputs[0], name, loc);
  Call c(g, name, "AddN", loc);
  return c.make("AddN", in);
}

Tensor matmul(const Operand& a, const Operand& b, const MatMulOptions& o, Loc loc) {
  Call c(graph_of({&a, &b}), o.name, "MatMul", loc);
  Output x = c.in(a, "a", b.dtype()), y = c.in(b, "b", a.dtype());
  if (x.shape().rank() > 2 || y.shape().rank() > 2) {
    return c.make("BatchMatMulV2", {x, y}, {{"adj_x", o.transpose_a}, {"adj_y", o.transpose_b}});
  }
  return c.make("MatMul", {x, y}, {{"transpose_a", o.transpose_a}, {"transpose_b", o.transpose_b}});
}

}  // namespace sluice::dsl
