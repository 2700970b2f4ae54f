// Element-wise functions of two and three tensors, with NumPy broadcasting.

#include "graph/infer.h"
#include "graph/ops/fold_rules.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

struct Binary {
  const char* name;
  const char* types;
  const char* doc;
  GradFn grad = nullptr;
  FoldFn fold = nullptr;
  uint32_t traits = kNone;
};

void add_binary(OpRegistry& r, Binary b) {
  r.add({.name = b.name,
         .inputs = {"x: T", "y: T"},
         .outputs = {"z: T"},
         .attrs = {b.types},
         .doc = b.doc,
         .traits = kElementwise | b.traits,
         .infer = broadcast_binary,
         .grad = std::move(b.grad),
         .fold = std::move(b.fold)});
}

Gradients reduced(Grad& g, Output gx, Output gy) {
  const auto [rx, ry] = g.unbroadcast(gx, gy);
  return {rx, ry};
}

Gradients add_grad(Grad& g) { return reduced(g, g.dy(), g.dy()); }

Gradients sub_grad(Grad& g) { return reduced(g, g.dy(), neg(g, g.dy())); }

bool same_static_shape(Grad& g) {
  const Shape &x = g.x(0).shape(), &y = g.x(1).shape();
  return x.fully_known() && x == y;
}

Gradients mul_grad(Grad& g) {
  const Output x = conj(g, g.x(0)), y = conj(g, g.x(1));
  const Output gx = g.op("Mul", {g.dy(), y});
  const Output gy = same_static_shape(g) ? g.op("Mul", {g.dy(), x}) : g.op("Mul", {x, g.dy()});
  return reduced(g, gx, gy);
}

Gradients mul_no_nan_grad(Grad& g) {
  const Output gx = g.op("MulNoNan", {g.dy(), g.x(1)});
  return reduced(g, gx, g.op("MulNoNan", {g.x(0), g.dy()}));
}

// dy / y and dy * ((-x / y) / y): dividing twice keeps y * y from overflowing.
GradFn quotient_grad(const char* op, const char* name) {
  return [op, name](Grad& g) {
    const Output x = conj(g, g.x(0)), y = conj(g, g.x(1)), dy = g.dy();
    const auto divide = [&](Output a, Output b) { return g.op(op, {a, b}, {}, name); };
    const Output gx = divide(dy, y);
    const Output slope = divide(divide(neg(g, x), y), y);
    return reduced(g, gx, mul(g, dy, slope));
  };
}

Gradients floor_mod_grad(Grad& g) {
  const Output quotient = g.op("FloorDiv", {g.x(0), g.x(1)});
  return reduced(g, g.dy(), mul(g, g.dy(), neg(g, quotient)));
}

// dx = dy * y * x^(y - 1); dy = dy * z * log x where x > 0, else 0: the masked log never sees x <= 0.
Gradients pow_grad(Grad& g) {
  const Output x = conj(g, g.x(0)), y = conj(g, g.x(1)), z = conj(g, g.y()), dy = g.dy();
  const Output scaled = mul(g, dy, y);
  const Output exponent = with_scalar_right(g, "Sub", "sub", y, 1.0);
  // 0 where the factor is 0: x^0 has the derivative 0 at x = 0 too, where x^-1 is infinite.
  const Output gx = g.op("MulNoNan", {g.op("Pow", {x, exponent}), scaled}, {}, "mul");
  // A constant exponent asks for no gradient, so no logarithm is made that numeric checks could trip over.
  if (!g.needs(1)) return reduced(g, gx, {});
  const char* test = is_complex(x.dtype()) ? "NotEqual" : "Greater";
  const Output mask = with_scalar_right(g, test, test, x, 0.0);
  const Output safe_x = g.op("Select", {mask, x, ones_like(g, x)});
  const Output log_x = g.op("Log", {safe_x});
  const Output log_or_zero = g.op("Select", {mask, log_x, g.zeros_like(x)});
  const Output gy = mul(g, mul(g, dy, z), log_or_zero);
  return reduced(g, gx, gy);
}

// The whole gradient to the winner; x wins a tie.
GradFn extremum_grad(const char* selector) {
  return [selector](Grad& g) {
    const Output dy = g.dy(), zeros = g.zeros_like(dy);
    const Output x_wins = g.op(selector, {g.x(0), g.x(1)});
    const Output gx = g.op("SelectV2", {x_wins, dy, zeros});
    const Output gy = g.op("SelectV2", {x_wins, zeros, dy});
    return reduced(g, gx, gy);
  };
}

Gradients squared_difference_grad(Grad& g) {
  const Output dy = g.dy();
  Output gx;
  {
    ControlDependencies after(g.graph(), {dy.node});
    const Output two = g.scalar_like(dy, 2.0, "scalar");
    const Output doubled = g.op("Mul", {two, dy});
    gx = mul(g, doubled, sub(g, g.x(0), g.x(1)));
  }
  return reduced(g, gx, neg(g, gx));
}

// 1 where x != 0: the derivative of Xlogy and Xdivy by x is masked like the functions themselves.
Output nonzero_mask(Grad& g, Output x) {
  const Output zero = g.scalar_like(x, 0.0, "Cast/x");
  return cast(g, g.op("NotEqual", {x, zero}), x.dtype());
}

Gradients xlogy_grad(Grad& g) {
  const Output x = g.x(0), y = g.x(1), dy = g.dy();
  Output gx, gy;
  {
    ControlDependencies after(g.graph(), {dy.node});
    const Output by_x = g.op("Xlogy", {nonzero_mask(g, x), y});
    const Output by_y = g.op("Xdivy", {x, y});
    gx = mul(g, by_x, dy);
    gy = mul(g, by_y, dy);
  }
  return reduced(g, gx, gy);
}

Gradients xdivy_grad(Grad& g) {
  const Output x = g.x(0), y = g.x(1), dy = g.dy();
  Output gx, gy;
  {
    ControlDependencies after(g.graph(), {dy.node});
    const Output by_x = g.op("Xdivy", {nonzero_mask(g, x), y});
    const Output minus_x = neg(g, x);
    const Output by_y = g.op("Xdivy", {minus_x, with_scalar_right(g, "Pow", "pow", y, 2.0)});
    gx = mul(g, by_x, dy);
    gy = mul(g, by_y, dy);
  }
  return reduced(g, gx, gy);
}

void register_arithmetic(OpRegistry& r) {
  add_binary(r,
             {"Add",
              "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, "
              "string}",
              "x + y with broadcasting; strings are joined.", add_grad, fold_binary(int_add)});
  add_binary(r,
             {"AddV2",
              "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, "
              "complex64, complex128}",
              "x + y with broadcasting.", add_grad, fold_binary(int_add), kCommutative});
  add_binary(r, {"Sub", kArithmeticTypes, "x - y with broadcasting.", sub_grad, fold_binary(int_sub)});
  add_binary(
      r, {"Mul", kArithmeticTypes, "x * y with broadcasting.", mul_grad, fold_binary(int_mul), kCommutative});
  add_binary(r, {"MulNoNan", kFloatComplexTypes, "x * y, and 0 wherever y is 0 even if x is infinite or NaN.",
                 mul_no_nan_grad});
  add_binary(r, {"Div", kArithmeticTypes, "x / y; integers are cut towards zero.",
                 quotient_grad("RealDiv", "truediv"), fold_binary(int_truncate_div)});
  add_binary(r, {"RealDiv", kArithmeticTypes, "x / y of real numbers.", quotient_grad("RealDiv", "RealDiv")});
  add_binary(r, {"DivNoNan", kFloatComplexTypes, "x / y, and 0 wherever y is 0.",
                 quotient_grad("DivNoNan", "div_no_nan")});
  add_binary(r, {"FloorDiv", kArithmeticTypes, "x / y rounded towards minus infinity.", no_gradient,
                 fold_binary(int_floor_div)});
  add_binary(r, {"TruncateDiv", kArithmeticTypes, "x / y rounded towards zero.", no_gradient,
                 fold_binary(int_truncate_div)});
  add_binary(r,
             {"FloorMod",
              "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
              "Remainder of FloorDiv: has y's sign.", floor_mod_grad, fold_binary(int_floor_mod)});
  for (const char* name : {"Mod", "TruncateMod"}) {
    add_binary(r, {name, "T: {int32, int64, bfloat16, half, float, double}",
                   "Remainder of TruncateDiv: has x's sign.", nullptr, fold_binary(int_truncate_mod)});
  }
  add_binary(r,
             {"Pow", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
              "x to the power y.", pow_grad});
  constexpr const char* kExtremumTypes =
      "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";
  add_binary(r, {"Maximum", kExtremumTypes, "The larger of x and y; a tie's gradient goes to x.",
                 extremum_grad("GreaterEqual"), fold_binary(int_maximum)});
  add_binary(r, {"Minimum", kExtremumTypes, "The smaller of x and y; a tie's gradient goes to x.",
                 extremum_grad("LessEqual"), fold_binary(int_minimum)});
  add_binary(r,
             {"SquaredDifference", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
              "(x - y) squared.", squared_difference_grad, nullptr, kCommutative});
  add_binary(r, {"Xlogy", kFloatComplexTypes, "x * log(y), and 0 wherever x is 0.", xlogy_grad});
  add_binary(r, {"Xdivy", kFloatComplexTypes, "x / y, and 0 wherever x is 0.", xdivy_grad});
}

// Equal and NotEqual may be told to answer with a scalar where the shapes don't broadcast.
void equality_shape(InferContext& c) {
  if (c.node().attr_or<bool>("incompatible_shape_error", true)) return broadcast_binary(c);
  c.set_output(0, broadcast_shapes(c.input(0), c.input(1)).value_or(Shape::scalar()));
}

void register_comparisons(OpRegistry& r) {
  const std::pair<const char*, const char*> orders[] = {{"Less", "x < y with broadcasting."},
                                                        {"LessEqual", "x <= y with broadcasting."},
                                                        {"Greater", "x > y with broadcasting."},
                                                        {"GreaterEqual", "x >= y with broadcasting."}};
  for (const auto& [name, doc] : orders) {
    r.add({.name = name,
           .inputs = {"x: T", "y: T"},
           .outputs = {"z: bool"},
           .attrs = {kRealTypes},
           .doc = doc,
           .traits = kElementwise | kNotDifferentiable,
           .infer = broadcast_binary});
  }
  const std::pair<const char*, const char*> equalities[] = {{"Equal", "x == y with broadcasting."},
                                                            {"NotEqual", "x != y with broadcasting."}};
  for (const auto& [name, doc] : equalities) {
    r.add({.name = name,
           .inputs = {"x: T", "y: T"},
           .outputs = {"z: bool"},
           .attrs = {"T: type", "incompatible_shape_error: bool = true"},
           .doc = doc,
           .traits = kElementwise | kCommutative | kNotDifferentiable,
           .infer = equality_shape});
  }
  const std::pair<const char*, const char*> logic[] = {{"LogicalAnd", "x and y with broadcasting."},
                                                       {"LogicalOr", "x or y with broadcasting."}};
  for (const auto& [name, doc] : logic) {
    r.add({.name = name,
           .inputs = {"x: bool", "y: bool"},
           .outputs = {"z: bool"},
           .doc = doc,
           .traits = kElementwise | kCommutative | kNotDifferentiable,
           .infer = broadcast_binary});
  }
}

// t and e merge; the condition is a scalar, a vector over t's rows, or of t's shape.
void select_shape(InferContext& c) {
  const Shape value = c.merge(c.input(1), c.input(2));
  c.set_output(0, value);
  const Shape& condition = c.input(0);
  if (!condition.known_rank() || !value.known_rank() || condition.rank() == 0) return;
  if (condition.rank() == 1) {
    if (value.rank() > 0) c.merge(condition, value.slice(0, 1));
    return;
  }
  c.set_output(0, c.merge(value, condition));
}

void select_v2_shape(InferContext& c) {
  const Shape values = broadcast(c, c.input(1), c.input(2));
  c.set_output(0, broadcast(c, c.input(0), values));
}

Gradients select_grad(Grad& g) {
  const Output dy = g.dy(), zeros = g.zeros_like(g.x(1));
  const Output gt = g.op("Select", {g.x(0), dy, zeros});
  const Output ge = g.op("Select", {g.x(0), zeros, dy});
  return {GradValue(), gt, ge};
}

Gradients select_v2_grad(Grad& g) {
  const Output dy = g.dy(), zeros = g.scalar_like(dy, 0.0, "zeros");
  const Output gt = g.op("SelectV2", {g.x(0), dy, zeros});
  const Output ge = g.op("SelectV2", {g.x(0), zeros, dy});
  const Output rt = unbroadcast_to(g, gt, g.x(1), g.y());
  return {GradValue(), rt, unbroadcast_to(g, ge, g.x(2), g.y())};
}

// dy to t inside the range, to the bound that was hit outside it.
Gradients clip_by_value_grad(Grad& g) {
  const Output t = g.x(0), low = g.x(1), high = g.x(2), dy = g.dy();
  const Output zeros = g.zeros_like(t);
  const Output below = g.op("Less", {t, low});
  const Output above = g.op("Greater", {t, high});
  const Output outside = g.op("LogicalOr", {below, above});
  const Output gt = g.op("Select", {outside, zeros, dy});
  const Output to_low = g.op("Select", {below, dy, zeros});
  const Output to_high = g.op("Select", {above, dy, zeros});
  const Output glow = unbroadcast_to(g, to_low, low, t);
  return {gt, glow, unbroadcast_to(g, to_high, high, t)};
}

void register_choices(OpRegistry& r) {
  r.add({.name = "Select",
         .inputs = {"condition: bool", "t: T", "e: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "t where the condition holds, else e; a vector condition chooses whole rows.",
         .infer = select_shape,
         .grad = select_grad});
  r.add({.name = "SelectV2",
         .inputs = {"condition: bool", "t: T", "e: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "t where the condition holds, else e, with broadcasting of all three.",
         .traits = kElementwise,
         .infer = select_v2_shape,
         .grad = select_v2_grad});
  r.add({.name = "ClipByValue",
         .inputs = {"t: T", "clip_value_min: T", "clip_value_max: T"},
         .outputs = {"output: T"},
         .attrs = {kNumberTypes},
         .doc = "t limited to [clip_value_min, clip_value_max]; the bounds are scalars or of t's shape.",
         .traits = kElementwise,
         .infer = same_shape,
         .grad = clip_by_value_grad});
}

}  // namespace

void register_math_binary(OpRegistry& r) {
  register_arithmetic(r);
  register_comparisons(r);
  register_choices(r);
}

}  // namespace sluice::graph::ops
