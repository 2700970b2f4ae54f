// Constants, placeholders, identities and the ops that pass their input on.

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"
#include "graph/support/check.h"

namespace sluice::graph::ops {
namespace {

void const_shape(InferContext& c) { c.set_output(0, c.attr<Literal>("value").shape()); }

void fold_const(FoldContext& c) {
  const Literal v = c.node().attr<Literal>("value");
  if (!folds_to_ints(c) || v.elements() > kMaxFoldElements) return;
  std::vector<std::optional<int64_t>> values;
  for (int64_t x : v.to_int64s()) values.emplace_back(x);
  c.set_output(0, make_ints(v.dims(), std::move(values)));
}

void attr_shape(InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); }

void placeholder_with_default(InferContext& c) {
  const Shape s = c.attr<Shape>("shape");
  c.merge(c.input(0), s);
  c.set_output(0, s);  // what may be fed, which may be less precise than the default
}

void each_input(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
}

void ensure_shape(InferContext& c) { c.set_output(0, c.merge(c.attr<Shape>("shape"), c.input(0))); }

void bitcast_shape(InferContext& c) {
  const auto in = static_cast<int64_t>(dtype_size(c.attr<DType>("T")));
  const auto out = static_cast<int64_t>(dtype_size(c.attr<DType>("type")));
  require(c, in > 0 && out > 0, "Cannot bitcast types ", c.attr<DType>("T"), " to ", c.attr<DType>("type"),
          " because one of the type sizes is zero");
  Shape s = c.input(0);
  if (!s.known_rank() || in == out) return c.set_output(0, s);
  if (in > out) return c.set_output(0, s.concat(Shape{in / out}));
  const int64_t factor = out / in;
  require(c, s.rank() >= 1, "Shape must be at least rank 1 but is rank 0");
  const int64_t last = s.dim(-1);
  require(c, last < 0 || last == factor, "Cannot bitcast from ", c.attr<DType>("T"), " to ",
          c.attr<DType>("type"), " due to shape. ", last, " does not match ", factor);
  c.set_output(0, s.slice(0, -1));
}

void fold_each(FoldContext& c) {
  for (int i = 0; i < c.node().num_outputs(); ++i)
    if (auto p = c.input(i)) c.set_output(i, std::move(*p));
}

Gradients check_numerics_gradient(Grad& g) {
  const std::string message =
      "Not a number (NaN) or infinity (Inf) values detected in gradient. " + g.attr<std::string>("message");
  return {g.op("CheckNumerics", {g.dy()}, {{"message", message}})};
}

Gradients prevented(Grad& g) {
  throw_error(Code::kInvalidArgument,
              cat("Gradient explicitly disabled. Reason: ", g.attr<std::string>("message")), g.node().name(),
              g.node().loc());
}

void add_sources(OpRegistry& r) {
  r.add({.name = "Const",
         .outputs = {"output: dtype"},
         .attrs = {"value: tensor", "dtype: type"},
         .doc = "A constant.",
         .infer = const_shape,
         .fold = fold_const});
  r.add({.name = "Placeholder",
         .outputs = {"output: dtype"},
         .attrs = {"dtype: type", "shape: shape = {unknown_rank: true}"},
         .doc = "A value that every run must feed.",
         .traits = kSource,
         .infer = attr_shape});
  r.add({.name = "PlaceholderV2",
         .outputs = {"output: dtype"},
         .attrs = {"dtype: type", "shape: shape"},
         .doc = "Placeholder under an old name (deprecated at graph version 23).",
         .traits = kSource,
         .infer = attr_shape});
  r.add({.name = "PlaceholderWithDefault",
         .inputs = {"input: dtype"},
         .outputs = {"output: dtype"},
         .attrs = {"dtype: type", "shape: shape"},
         .doc = "The input, unless the run feeds another value.",
         .traits = kSource,
         .infer = placeholder_with_default,
         .grad = pass_gradient});
}

void add_identities(OpRegistry& r) {
  r.add({.name = "Identity",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "The input under another name.",
         .traits = kElementwise | kViewOf0,
         .infer = same_shape,
         .grad = pass_gradient,
         .fold = fold_input0});
  r.add({.name = "IdentityN",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: list(type) >= 1"},
         .doc = "All inputs, each under another name.",
         .infer = each_input,
         .grad = pass_gradient,
         .fold = fold_each});
  r.add({.name = "RefIdentity",
         .inputs = {"input: Ref(T)"},
         .outputs = {"output: Ref(T)"},
         .attrs = {"T: type"},
         .doc = "The same variable reference.",
         .traits = kViewOf0 | kAllowsUninitialized,
         .infer = same_shape,
         .grad = pass_gradient});
  r.add({.name = "Snapshot",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "A copy of the input's value.",
         .infer = same_shape,
         .grad = pass_gradient,
         .fold = fold_input0});
  r.add({.name = "StopGradient",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "The input, which gradients take for a constant.",
         .traits = kElementwise | kViewOf0 | kNotDifferentiable,
         .infer = same_shape,
         .fold = fold_input0});
  r.add({.name = "PreventGradient",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "message: string = ''"},
         .doc = "The input; asking for a gradient through it is an error with `message`.",
         .traits = kElementwise | kViewOf0,
         .infer = same_shape,
         .grad = prevented,
         .fold = fold_input0});
  r.add({.name = "EnsureShape",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"shape: shape", "T: type"},
         .doc = "The input, whose shape must match `shape`.",
         .traits = kViewOf0,
         .infer = ensure_shape,
         .grad = pass_gradient,
         .fold = fold_input0});
  r.add({.name = "Bitcast",
         .inputs = {"input: T"},
         .outputs = {"output: type"},
         .attrs = {"T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, "
                   "int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
                   "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, "
                   "int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}"},
         .doc = "The input's bytes read as another type.",
         .infer = bitcast_shape});
  r.add({.name = "CheckNumerics",
         .inputs = {"tensor: T"},
         .outputs = {"output: T"},
         .attrs = {"T: {bfloat16, half, float, double}", "message: string"},
         .doc = "The input; the step fails with `message` when an element is NaN or infinite.",
         .traits = kElementwise | kNumericCheck,
         .infer = same_shape,
         .grad = check_numerics_gradient});
  r.add({.name = "NoOp", .doc = "Does nothing; carries control edges.", .infer = no_outputs});
}

void add_printing(OpRegistry& r) {
  r.add({.name = "Print",
         .inputs = {"input: T", "data: U"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "U: list(type) >= 0", "message: string = ''", "first_n: int = -1",
                   "summarize: int = 3"},
         .doc = "The input; prints `data` when it runs.",
         .traits = kStateful | kHostOnly,
         .infer = same_shape,
         .grad = pass_gradient});
  r.add({.name = "PrintV2",
         .inputs = {"input: string"},
         .attrs = {"output_stream: string = 'stderr'", "end: string = '\n'"},
         .doc = "Prints a string to a stream.",
         .traits = kStateful | kHostOnly,
         .infer = [](InferContext& c) { require_scalar(c, 0); }});
  r.add({.name = "Assert",
         .inputs = {"condition: bool", "data: T"},
         .attrs = {"T: list(type) >= 1", "summarize: int = 3"},
         .doc = "Fails the step and prints `data` when the condition is false.",
         .traits = kStateful | kHostOnly | kNotDifferentiable,
         .infer = no_outputs});
}

}  // namespace

void register_array(OpRegistry& r) {
  add_sources(r);
  add_identities(r);
  add_printing(r);
}

}  // namespace sluice::graph::ops
