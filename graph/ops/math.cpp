// Element-wise functions of one tensor, and sums of many.

#include <cmath>
#include <numbers>

#include "graph/infer.h"
#include "graph/ops/fold_rules.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

// Nodes of a gradient that need not exist before dy does: TensorFlow ties them to it so that they are not
// computed early and held in memory.
class AfterDy {
 public:
  explicit AfterDy(Grad& g) : dy(g.dy()), scope_(g.graph(), {dy.node}) {}
  const Output dy;

 private:
  ControlDependencies scope_;
};

struct Unary {
  const char* name;
  const char* types;
  const char* doc;
  GradFn grad;
  FoldFn fold = nullptr;
};

void add_unary(OpRegistry& r, Unary u) {
  r.add({.name = u.name,
         .inputs = {"x: T"},
         .outputs = {"y: T"},
         .attrs = {u.types},
         .doc = u.doc,
         .traits = kElementwise,
         .infer = same_shape,
         .grad = std::move(u.grad),
         .fold = std::move(u.fold)});
}

// dy * f(x), f an op of x.
GradFn times_op_of_x(const char* op) {
  return [op](Grad& g) {
    AfterDy after(g);
    return Gradients{mul(g, after.dy, g.op(op, {conj(g, g.x())}))};
  };
}

// Op(y, dy): the fused gradients that take the forward output first.
GradFn fused_of_y(const char* op) {
  return [op](Grad& g) {
    AfterDy after(g);
    return Gradients{g.op(op, {conj(g, g.y()), after.dy})};
  };
}

Output square_of(Grad& g, Output x) { return g.op("Square", {x}); }

// 1 / sqrt(1 - x^2), of Asin and Acos.
Output arcus_slope(Grad& g) {
  const Output x2 = square_of(g, conj(g, g.x()));
  const Output one = g.scalar_like(g.dy(), 1.0);
  return g.op("Reciprocal", {g.op("Sqrt", {g.op("Sub", {one, x2})})});
}

GradFn error_function_grad(double factor) {
  return [factor](Grad& g) {
    const Output c = g.scalar_like(g.dy(), factor);
    AfterDy after(g);
    const Output scaled = mul(g, after.dy, c);
    return Gradients{mul(g, scaled, g.op("Exp", {neg(g, square_of(g, conj(g, g.x())))}))};
  };
}

void register_powers(OpRegistry& r) {
  add_unary(r, {"Square",
                "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
                "uint32, uint64, complex64, complex128}",
                "x * x, element by element.", [](Grad& g) {
                  AfterDy after(g);
                  const Output x = conj(g, g.x());
                  const Output two = g.scalar_like(x, 2.0);
                  return Gradients{g.op("Mul", {after.dy, g.op("Mul", {x, two})})};
                }});
  add_unary(r, {"Sqrt", kFloatComplexTypes, "Square root, element by element.", [](Grad& g) {
                  return Gradients{g.op("SqrtGrad", {g.y(), g.dy()})};
                }});
  add_unary(r, {"Rsqrt", kFloatComplexTypes, "1 / sqrt(x), element by element.", [](Grad& g) {
                  return Gradients{g.op("RsqrtGrad", {g.y(), g.dy()})};
                }});
  for (const char* name : {"Reciprocal", "Inv"}) {
    add_unary(r, {name, kSignedTypes, "1 / x, element by element.", [](Grad& g) {
                    return Gradients{g.op("ReciprocalGrad", {g.y(), g.dy()})};
                  }});
  }
}

void register_exponentials(OpRegistry& r) {
  add_unary(r, {"Exp", kFloatComplexTypes, "e to the x, element by element.", [](Grad& g) {
                  AfterDy after(g);
                  return Gradients{mul(g, after.dy, conj(g, g.y()))};
                }});
  add_unary(r, {"Expm1", kFloatComplexTypes, "exp(x) - 1, exact near 0.", times_op_of_x("Exp")});
  add_unary(
      r, {"Log", kFloatComplexTypes, "Natural logarithm, element by element.", times_op_of_x("Reciprocal")});
  add_unary(r, {"Log1p", kFloatComplexTypes, "log(1 + x), exact near 0.", [](Grad& g) {
                  AfterDy after(g);
                  const Output one_plus = with_scalar_left(g, "AddV2", "add", 1.0, conj(g, g.x()));
                  return Gradients{mul(g, after.dy, g.op("Reciprocal", {one_plus}))};
                }});
  add_unary(r, {"Erf", kFloatTypes, "Gauss error function.",
                error_function_grad(2.0 / std::sqrt(std::numbers::pi))});
  add_unary(r, {"Erfc", kFloatTypes, "1 - erf(x).", error_function_grad(-2.0 / std::sqrt(std::numbers::pi))});
}

void register_trigonometry(OpRegistry& r) {
  add_unary(r, {"Sin", kFloatComplexTypes, "Sine, element by element.", times_op_of_x("Cos")});
  add_unary(r, {"Cos", kFloatComplexTypes, "Cosine, element by element.", [](Grad& g) {
                  AfterDy after(g);
                  const Output minus_dy = neg(g, after.dy);
                  return Gradients{mul(g, minus_dy, g.op("Sin", {conj(g, g.x())}))};
                }});
  add_unary(r, {"Tan", kFloatComplexTypes, "Tangent, element by element.", [](Grad& g) {
                  AfterDy after(g);
                  const Output secx = g.op("Reciprocal", {g.op("Cos", {conj(g, g.x())})});
                  return Gradients{mul(g, square_of(g, secx), after.dy)};
                }});
  add_unary(r, {"Asin", kFloatComplexTypes, "Inverse sine.", [](Grad& g) {
                  AfterDy after(g);
                  return Gradients{mul(g, after.dy, arcus_slope(g))};
                }});
  add_unary(r, {"Acos", kFloatComplexTypes, "Inverse cosine.", [](Grad& g) {
                  AfterDy after(g);
                  const Output slope = arcus_slope(g);
                  return Gradients{mul(g, neg(g, after.dy), slope)};
                }});
  add_unary(r,
            {"Atan", kFloatComplexTypes, "Inverse tangent.", [](Grad& g) {
               AfterDy after(g);
               const Output x2 = square_of(g, conj(g, g.x()));
               const Output one = g.scalar_like(after.dy, 1.0);
               return Gradients{mul(g, after.dy, g.op("Reciprocal", {g.op("AddV2", {one, x2}, {}, "Add")}))};
             }});
  add_unary(r, {"Sinh", kFloatComplexTypes, "Hyperbolic sine.", times_op_of_x("Cosh")});
  add_unary(r, {"Cosh", kFloatComplexTypes, "Hyperbolic cosine.", times_op_of_x("Sinh")});
  add_unary(r, {"Tanh", kFloatComplexTypes, "Hyperbolic tangent.", fused_of_y("TanhGrad")});
  add_unary(r, {"Sigmoid", kFloatComplexTypes, "1 / (1 + exp(-x)), element by element.",
                fused_of_y("SigmoidGrad")});
}

void register_signs_and_rounding(OpRegistry& r) {
  add_unary(
      r, {"Neg", kSignedTypes, "-x, element by element.", [](Grad& g) { return Gradients{neg(g, g.dy())}; },
          fold_unary([](int64_t x) { return int_sub(0, x); })});
  add_unary(r, {"Abs", "T: {bfloat16, half, float, double, int8, int16, int32, int64}",
                "Absolute value; its gradient at 0 is 0.",
                [](Grad& g) { return Gradients{mul(g, g.dy(), g.op("Sign", {g.x()}))}; },
                fold_unary([](int64_t x) { return x < 0 ? int_sub(0, x) : std::optional<int64_t>(x); })});
  add_unary(r, {"Sign", kSignedTypes, "-1, 0 or 1; its gradient is zeros, not none.",
                [](Grad& g) { return Gradients{g.zeros_like(g.x())}; }});
  add_unary(r, {"Floor", kFloatTypes, "Largest integer not above x.", no_gradient});
  add_unary(r, {"Ceil", kFloatTypes, "Smallest integer not below x.", no_gradient});
  add_unary(r, {"Rint", kFloatTypes, "Nearest integer, halves to even.", no_gradient});
  add_unary(r, {"Round", kSignedTypes, "Nearest integer, halves to even.", no_gradient});
}

// The *Grad ops: inputs y (the forward output) and dy.
void add_fused_grad(OpRegistry& r, const char* name, const char* doc, GradFn grad) {
  r.add({.name = name,
         .inputs = {"y: T", "dy: T"},
         .outputs = {"z: T"},
         .attrs = {kFloatComplexTypes},
         .doc = doc,
         .traits = kElementwise,
         .infer = same_shape,
         .grad = std::move(grad)});
}

// (dy * -2) * b * a and Op(a, dy): TanhGrad, ReciprocalGrad.
GradFn minus_two_grad(const char* op) {
  return [op](Grad& g) {
    AfterDy after(g);
    const Output a = conj(g, g.x(0)), b = conj(g, g.x(1));
    const Output scaled = with_scalar_right(g, "Mul", "mul", after.dy, -2.0);
    const Output ga = mul(g, mul(g, scaled, b), a);
    return Gradients{ga, g.op(op, {a, after.dy})};
  };
}

void register_fused_grads(OpRegistry& r) {
  add_fused_grad(r, "TanhGrad", "dy * (1 - y * y) for y = tanh(x).", minus_two_grad("TanhGrad"));
  for (const char* name : {"ReciprocalGrad", "InvGrad"})
    add_fused_grad(r, name, "-dy * y * y for y = 1 / x.", minus_two_grad("ReciprocalGrad"));
  add_fused_grad(r, "SigmoidGrad", "dy * y * (1 - y) for y = sigmoid(x).", [](Grad& g) {
    AfterDy after(g);
    const Output a = conj(g, g.x(0)), b = conj(g, g.x(1));
    const Output gb = mul(g, after.dy, b);
    const Output twice = mul(g, with_scalar_left(g, "Mul", "mul", 2.0, gb), a);
    const Output ga = sub(g, gb, twice);
    return Gradients{ga, g.op("SigmoidGrad", {a, after.dy})};
  });
  add_fused_grad(r, "SqrtGrad", "0.5 * dy / y for y = sqrt(x).", [](Grad& g) {
    AfterDy after(g);
    const Output slope = truediv(g, after.dy, g.x(0));
    const Output ga = mul(g, neg(g, conj(g, slope)), g.y());
    return Gradients{ga, with_scalar_left(g, "Mul", "mul", 0.5, slope)};
  });
  add_fused_grad(r, "RsqrtGrad", "-0.5 * dy * y^3 for y = rsqrt(x).", [](Grad& g) {
    AfterDy after(g);
    const Output a = conj(g, g.x(0)), dy = conj(g, after.dy);
    const Output scaled = mul(g, with_scalar_left(g, "Mul", "mul", -1.5, dy), g.x(1));
    const Output ga = mul(g, scaled, square_of(g, a));
    return Gradients{ga, g.op("RsqrtGrad", {a, after.dy})};
  });
}

void register_tests(OpRegistry& r) {
  const std::pair<const char*, const char*> tests[] = {{"IsNan", "True where x is not a number."},
                                                       {"IsInf", "True where x is an infinity."},
                                                       {"IsFinite", "True where x is a finite number."}};
  for (const auto& [name, doc] : tests) {
    r.add({.name = name,
           .inputs = {"x: T"},
           .outputs = {"y: bool"},
           .attrs = {kFloatTypes},
           .doc = doc,
           .traits = kElementwise | kNotDifferentiable,
           .infer = same_shape});
  }
  r.add({.name = "LogicalNot",
         .inputs = {"x: bool"},
         .outputs = {"y: bool"},
         .doc = "Not x, element by element.",
         .traits = kElementwise | kNotDifferentiable,
         .infer = same_shape});
}

Gradients cast_grad(Grad& g) {
  const DType from = base_dtype(g.x().dtype()), to = base_dtype(g.dy().dtype());
  const auto carries = [](DType t) { return is_floating(t) || is_complex(t); };
  if (!carries(from) || !carries(to)) return no_gradient(g);
  return {cast(g, g.dy(), from)};
}

void register_conversions(OpRegistry& r) {
  r.add({.name = "Cast",
         .inputs = {"x: SrcT"},
         .outputs = {"y: DstT"},
         .attrs = {"SrcT: type", "DstT: type", "Truncate: bool = false"},
         .doc = "The same values as another type; fractions are cut off, false and true become 0 and 1.",
         .traits = kElementwise,
         .infer = same_shape,
         .grad = cast_grad,
         .fold = fold_cast});
  r.add({.name = "Conj",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: {complex64, complex128, variant} = complex64"},
         .doc = "Complex conjugate.",
         .traits = kElementwise,
         .infer = same_shape,
         .grad = [](Grad& g) { return Gradients{conj(g, g.dy())}; }});
}

// Every addend gets dy itself.
Gradients spread_grad(Grad& g) { return Gradients(static_cast<size_t>(g.num_inputs()), g.dy()); }

void register_sums(OpRegistry& r) {
  r.add({.name = "AddN",
         .inputs = {"inputs: N * T"},
         .outputs = {"sum: T"},
         .attrs = {"N: int >= 1",
                   "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
                   "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}"},
         .doc = "Sum of tensors of one shape.",
         .traits = kElementwise | kCommutative | kAggregate,
         .infer = merge_all_inputs,
         .grad = spread_grad});
  r.add({.name = "AccumulateNV2",
         .inputs = {"inputs: N * T"},
         .outputs = {"sum: T"},
         .attrs = {"N: int >= 1", kNumberTypes, "shape: shape"},
         .doc = "Sum of tensors of one shape, adding them as they arrive.",
         .traits = kElementwise | kCommutative | kAggregate,
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); },
         .grad = spread_grad});
}

}  // namespace

void register_math(OpRegistry& r) {
  register_powers(r);
  register_exponentials(r);
  register_trigonometry(r);
  register_signs_and_rounding(r);
  register_fused_grads(r);
  register_tests(r);
  register_conversions(r);
  register_sums(r);
}

}  // namespace sluice::graph::ops
