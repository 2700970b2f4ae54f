#include "tests/runtime/toy.h"

#include <cstring>

namespace sluice::runtime {
namespace {

void broadcast_apply(KernelRun& r, float (*f)(float, float)) {
  const float *a = r.in<float>(0), *b = r.in<float>(1);
  float* out = r.out<float>(0);
  const int64_t n = r.out_spec(0).elements(), na = r.in_spec(0).elements(), nb = r.in_spec(1).elements();
  for (int64_t i = 0; i < n; ++i) out[i] = f(a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i]);
}

void add(KernelRun& r) {
  if (r.out_dtype(0) == DType::kDouble) {
    const int64_t n = r.out_spec(0).elements();
    for (int64_t i = 0; i < n; ++i)
      r.out<double>(0)[i] = r.in<double>(0)[r.in_spec(0).elements() == 1 ? 0 : i] +
                            r.in<double>(1)[r.in_spec(1).elements() == 1 ? 0 : i];
    return;
  }
  broadcast_apply(r, [](float x, float y) { return x + y; });
}
void mul(KernelRun& r) {
  broadcast_apply(r, [](float x, float y) { return x * y; });
}
void neg(KernelRun& r) {
  for (int64_t i = 0; i < r.out_spec(0).elements(); ++i) r.out<float>(0)[i] = -r.in<float>(0)[i];
}
void assign(KernelRun& r) {
  const ValueSpec& v = r.in_spec(1);
  auto b = std::make_shared<VariableBuffer>(ValueSpec{v.dtype, v.dims, {}});
  std::memcpy(b->buffer.data(), r.in_data(1), v.bytes());
  r.variable(0).install(std::move(b));
}
void assign_add(KernelRun& r) {
  Variable::WriteGuard g(r.variable(0));
  float* p = static_cast<float*>(g.buffer().buffer.data());
  const int64_t n = r.in_spec(1).elements();
  for (int64_t i = 0; i < g.buffer().spec.elements(); ++i) p[i] += r.in<float>(1)[n == 1 ? 0 : i];
}
void is_initialized(KernelRun& r) { *r.out<bool>(0) = r.variable(0).initialized(); }
void positive(KernelRun& r) {
  std::vector<float> found;
  for (int64_t i = 0; i < r.in_spec(0).elements(); ++i)
    if (r.in<float>(0)[i] > 0) found.push_back(r.in<float>(0)[i]);
  r.out_array(0) = Array::from<float>({static_cast<int64_t>(found.size())}, std::span<const float>(found));
}
void heavy(KernelRun& r) {
  for (int64_t i = 0; i < r.out_spec(0).elements(); ++i) r.out<float>(0)[i] = 0.5f * r.in<float>(0)[i] + 1;
}
void heavy_grad(KernelRun& r) {
  for (int64_t i = 0; i < r.out_spec(0).elements(); ++i)
    r.out<float>(0)[i] = r.in<float>(0)[i] + 2 * r.in<float>(1)[i] + 3 * r.in<float>(2)[i];
}
void fail(KernelRun&) { throw_error(Code::kInvalidArgument, "this op always fails"); }
void wait(KernelRun& r) {
  while (!r.state().cancel->cancelled()) std::this_thread::yield();
  r.state().cancel->check();
}
void fill(KernelRun& r) {
  for (int64_t i = 0; i < r.out_spec(0).elements(); ++i) r.out<float>(0)[i] = *r.in<float>(1);
}
void greet(KernelRun& r) { r.out_array(0).string_values()[0] = "hello " + r.in_array(0).string_values()[0]; }

}  // namespace

OpRegistry toy_ops() {
  using namespace graph;
  OpRegistry r;
  r.add({.name = "Placeholder",
         .outputs = {"output: dtype"},
         .attrs = {"dtype: type", "shape: shape = {unknown_rank: true}"},
         .doc = "A source.",
         .traits = kSource,
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); }});
  r.add({.name = "Const",
         .outputs = {"output: dtype"},
         .attrs = {"value: tensor", "dtype: type"},
         .doc = "A constant.",
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Literal>("value").shape()); }});
  for (const char* name : {"Add", "Mul"})
    r.add({.name = name,
           .inputs = {"x: T", "y: T"},
           .outputs = {"z: T"},
           .attrs = {"T: type"},
           .doc = "Elementwise.",
           .traits = kElementwise,
           .infer = broadcast_binary});
  r.add({.name = "HeavyGrad",
         .inputs = {"x: T", "y: T", "dy: T"},
         .outputs = {"dx: T"},
         .attrs = {"T: type"},
         .doc = "Stands for the gradient of something expensive.",
         .infer = same_shape});
  for (const char* name : {"Neg", "Heavy", "Fail", "Wait"})
    r.add({.name = name,
           .inputs = {"x: T"},
           .outputs = {"y: T"},
           .attrs = {"T: type"},
           .doc = "One in, one out.",
           .traits = std::string_view(name) == "Wait"  ? kStateful | kMayBlock
                     : std::string_view(name) == "Neg" ? kElementwise
                                                       : kNone,
           .infer = same_shape});
  r.add({.name = "Identity",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "The same.",
         .traits = kViewOf0,
         .infer = same_shape});
  r.add({.name = "Reshape",
         .inputs = {"tensor: T", "shape: int32"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "Other dims.",
         .traits = kViewOf0,
         .infer = [](InferContext& c) { c.set_output(0, c.shape_value(1)); }});
  r.add({.name = "Fill",
         .inputs = {"dims: int32", "value: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type"},
         .doc = "One value everywhere.",
         .infer = [](InferContext& c) { c.set_output(0, c.shape_value(0)); }});
  r.add({.name = "Shape",
         .inputs = {"input: T"},
         .outputs = {"output: int32"},
         .attrs = {"T: type"},
         .doc = "Its dims.",
         .infer =
             [](InferContext& c) {
               c.set_output(0, c.input(0).known_rank() ? Shape{c.input(0).rank()} : Shape::of_rank(1));
             },
         .fold =
             [](FoldContext& c) {
               if (!c.input_shape(0).known_rank()) return;
               PartialInts p;
               for (int64_t d : c.input_shape(0).dims())
                 p.values.push_back(d < 0 ? std::nullopt : std::optional(d));
               c.set_output(0, p);
             }});
  r.add({.name = "Positive",
         .inputs = {"x: float"},
         .outputs = {"y: float"},
         .doc = "The positive elements.",
         .traits = kDynamicShape,
         .infer = [](InferContext& c) { c.set_output(0, Shape::of_rank(1)); }});
  r.add({.name = "Greet",
         .inputs = {"x: string"},
         .outputs = {"y: string"},
         .doc = "A greeting.",
         .traits = kHostOnly,
         .infer = scalar_output});
  r.add({.name = "NoOp", .doc = "Nothing.", .infer = no_outputs});
  r.add({.name = "VarHandleOp",
         .outputs = {"resource: resource"},
         .attrs = {"container: string = ''", "shared_name: string = ''", "dtype: type", "shape: shape"},
         .doc = "A variable's handle.",
         .traits = kVariable | kStateful,
         .infer = scalar_output});
  r.add({.name = "VariableV2",
         .outputs = {"ref: Ref(dtype)"},
         .attrs = {"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
         .doc = "A variable.",
         .traits = kVariable | kStateful,
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); }});
  r.add({.name = "ReadVariableOp",
         .inputs = {"resource: resource"},
         .outputs = {"value: dtype"},
         .attrs = {"dtype: type"},
         .doc = "The value.",
         .traits = kReadsVariable | kViewOf0 | kStateful,
         .infer = [](InferContext& c) { c.set_output(0, c.handle_shape(0)); }});
  r.add({.name = "AssignVariableOp",
         .inputs = {"resource: resource", "value: dtype"},
         .attrs = {"dtype: type"},
         .doc = "Sets it.",
         .traits = kWritesVariable | kAllowsUninitialized | kStateful,
         .infer = no_outputs});
  r.add({.name = "AssignAddVariableOp",
         .inputs = {"resource: resource", "value: dtype"},
         .attrs = {"dtype: type"},
         .doc = "Adds to it.",
         .traits = kWritesVariable | kStateful,
         .infer = no_outputs});
  r.add({.name = "VarIsInitializedOp",
         .inputs = {"resource: resource"},
         .outputs = {"is_initialized: bool"},
         .doc = "Has it a value?",
         .traits = kReadsVariable | kAllowsUninitialized | kStateful,
         .infer = scalar_output});
  r.add({.name = "Assign",
         .inputs = {"ref: Ref(T)", "value: T"},
         .outputs = {"output_ref: Ref(T)"},
         .attrs = {"T: type"},
         .doc = "Sets it.",
         .traits = kWritesVariable | kAllowsUninitialized | kStateful,
         .infer = [](InferContext& c) { c.set_output(0, c.input(1)); }});
  r.add({.name = "AssignAdd",
         .inputs = {"ref: Ref(T)", "value: T"},
         .outputs = {"output_ref: Ref(T)"},
         .attrs = {"T: type"},
         .doc = "Adds to it.",
         .traits = kWritesVariable | kStateful,
         .infer = same_shape});
  return r;
}

KernelRegistry toy_kernels() {
  KernelRegistry k;
  auto put = [&](const char* op, KernelFn fn, std::vector<std::pair<int, int>> share = {}) {
    k.add({.op = op, .name = "toy", .make = plain(fn, std::move(share)), .reference = true});
  };
  put("Add", add, {{0, 0}, {1, 0}});
  put("Mul", mul, {{0, 0}, {1, 0}});
  put("Neg", neg, {{0, 0}});
  put("Heavy", heavy);
  put("HeavyGrad", heavy_grad);
  put("Fail", fail);
  put("Wait", wait);
  put("Fill", fill);
  put("Positive", positive);
  put("Greet", greet);
  put("AssignVariableOp", assign);
  put("Assign", assign);
  put("AssignAddVariableOp", assign_add);
  put("AssignAdd", assign_add);
  put("VarIsInitializedOp", is_initialized);
  return k;
}

}  // namespace sluice::runtime
