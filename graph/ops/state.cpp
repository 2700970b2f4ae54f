// Variables, in both of TensorFlow's forms (graph-and-training §8.5): resource handles and references.

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

constexpr uint32_t kReads = kStateful | kReadsVariable;
constexpr uint32_t kWrites = kStateful | kWritesVariable | kNotDifferentiable;
constexpr const char* kIndices = "Tindices: {int32, int64}";

void variable_shape(InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); }

// Resource form.

void read_shape(InferContext& c) { c.set_output(0, c.handle_shape(0)); }
void assign_resource(InferContext& c) { c.merge(c.handle_shape(0), c.input(1)); }

void handle_shape_vector(InferContext& c) {
  const Shape s = c.handle_shape(0);
  c.set_output(0, s.known_rank() ? Shape{s.rank()} : Shape::of_rank(1));
}

void fold_variable_shape(FoldContext& c) {
  const Shape s = handle_shape(c.node().input(0));
  if (s.known_rank()) c.set_output(0, ints_of(s));
}

void resource_gather_shape(InferContext& c) {
  const Shape v = c.handle_shape(0);
  const Shape& indices = c.input(1);
  int64_t batch = c.attr<int64_t>("batch_dims");
  if (!v.known_rank() || !indices.known_rank()) return;
  require(c, v.rank() >= 1, "Shape must be at least rank 1 but is rank 0");
  if (batch < 0) batch += indices.rank();
  require(c, batch >= 0 && batch <= indices.rank() && batch < v.rank(), "batch_dims (",
          c.attr<int64_t>("batch_dims"), ") must be less than the rank of the variable (", v.rank(),
          ") and at most that of indices (", indices.rank(), ")");
  const auto b = static_cast<int>(batch);
  c.set_output(0, c.merge(v.slice(0, b), indices.slice(0, b))
                      .concat(indices.slice(b, indices.rank()))
                      .concat(v.slice(b + 1, v.rank())));
}

void resource_gather_nd_shape(InferContext& c) {
  const Shape v = c.handle_shape(0);
  const Shape indices = c.with_rank_at_least(1, 1);
  if (!v.known_rank() || !indices.known_rank() || !indices.known_dim(-1)) return;
  const int64_t depth = indices.dim(-1);
  require(c, depth <= v.rank(), "indices.shape[-1] must be <= params.rank, but saw indices shape: ", indices,
          " and params shape: ", v);
  c.set_output(0, indices.slice(0, -1).concat(v.slice(static_cast<int>(depth), v.rank())));
}

// The variable's shape: a constant where it is known.
Output shape_of_variable(Grad& g, DType type = DType::kInt32) {
  const Shape s = handle_shape(g.x());
  if (!s.fully_known()) return g.op("VariableShape", {g.x()}, {{"out_type", type}});
  return g.constant(Literal::vector<int64_t>(std::span<const int64_t>(s.dims())).cast(type));
}

Gradients resource_gather_gradient(Grad& g) {
  SLUICE_REQUIRE(g.attr<int64_t>("batch_dims") == 0, Code::kUnimplemented, "Gradient of '", g.node().name(),
                 "': ResourceGather with batch_dims has none; read the variable and gather from the value");
  const Output shape = shape_of_variable(g);
  const Output size = expand_dims(g, size_of(g, g.x(1)), 0);
  const Output values_shape = concat(g, {size, slice_vector(g, shape, 1, std::nullopt)}, 0);
  const Output values = g.op("Reshape", {g.dy(), values_shape});
  const Output indices = g.op("Reshape", {g.x(1), size});
  return {IndexedSlices{values, indices, shape}, {}};
}

Gradients resource_gather_nd_gradient(Grad& g) {
  const Output shape = shape_of_variable(g, g.x(1).dtype());
  const Shape& s = g.x(1).shape();
  if (s.known_rank() && s.rank() == 2 && s.dim(1) == 1) {
    const Output dy = g.dy();
    const Output rows = g.op("Squeeze", {g.x(1)}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
    return {IndexedSlices{dy, rows, shape}, {}};
  }
  return {g.op("ScatterNd", {g.x(1), g.dy(), shape}), {}};
}

// Reference form.

void assign_shape(InferContext& c) {
  if (!c.attr<bool>("validate_shape")) return c.set_output(0, c.input(1));
  c.set_output(0, c.merge(c.input(0), c.input(1)));
}

void update_shape(InferContext& c) { c.set_output(0, c.merge(c.input(0), c.input(1))); }

void count_up_to_shape(InferContext& c) { c.set_output(0, c.with_rank(0, 0)); }

void add_resource(OpRegistry& r) {
  r.add({.name = "VarHandleOp",
         .outputs = {"resource: resource"},
         .attrs = {"container: string = ''", "shared_name: string = ''", "dtype: type", "shape: shape"},
         .doc = "A handle to a variable, named by container and shared_name (or the node's name).",
         .traits = kStateful | kVariable,
         .infer = scalar_output,
         .later_attrs = {"debug_name: string", "allowed_devices: list(string) = []"}});
  r.add({.name = "ReadVariableOp",
         .inputs = {"resource: resource"},
         .outputs = {"value: dtype"},
         .attrs = {"dtype: type"},
         .doc = "The variable's value at the moment the op runs.",
         .traits = kReads | kViewOf0,
         .infer = read_shape,
         .grad = pass_gradient});
  r.add({.name = "AssignVariableOp",
         .inputs = {"resource: resource", "value: dtype"},
         .attrs = {"dtype: type"},
         .doc = "Gives the variable a value.",
         .traits = kWrites | kAllowsUninitialized,
         .infer = assign_resource,
         .later_attrs = {"validate_shape: bool"}});
  for (const char* name : {"AssignAddVariableOp", "AssignSubVariableOp"})
    r.add({.name = name,
           .inputs = {"resource: resource", "value: dtype"},
           .attrs = {"dtype: type"},
           .doc = "Adds the value to the variable (or subtracts it).",
           .traits = kWrites,
           .infer = assign_resource});
  r.add({.name = "VarIsInitializedOp",
         .inputs = {"resource: resource"},
         .outputs = {"is_initialized: bool"},
         .doc = "Whether the variable has a value.",
         .traits = kReads | kAllowsUninitialized | kNotDifferentiable,
         .infer = scalar_output});
  r.add({.name = "VariableShape",
         .inputs = {"input: resource"},
         .outputs = {"output: out_type"},
         .attrs = {"out_type: {int32, int64} = int32"},
         .doc = "The shape of the variable's value.",
         .traits = kReads | kNotDifferentiable,
         .infer = handle_shape_vector,
         .fold = fold_variable_shape});
  r.add({.name = "DestroyResourceOp",
         .inputs = {"resource: resource"},
         .attrs = {"ignore_lookup_error: bool = true"},
         .doc = "Deletes the resource.",
         .traits = kWrites | kAllowsUninitialized,
         .infer = no_outputs});
  r.add({.name = "ResourceGather",
         .inputs = {"resource: resource", "indices: Tindices"},
         .outputs = {"output: dtype"},
         .attrs = {"batch_dims: int = 0", "validate_indices: bool = true", "dtype: type", kIndices},
         .doc = "Rows of the variable, without reading the rest.",
         .traits = kReads,
         .infer = resource_gather_shape,
         .grad = resource_gather_gradient});
  r.add({.name = "ResourceGatherNd",
         .inputs = {"resource: resource", "indices: Tindices"},
         .outputs = {"output: dtype"},
         .attrs = {"dtype: type", kIndices},
         .doc = "GatherNd of the variable, without reading the rest.",
         .traits = kReads,
         .infer = resource_gather_nd_shape,
         .grad = resource_gather_nd_gradient});
  r.add({.name = "ResourceCountUpTo",
         .inputs = {"resource: resource"},
         .outputs = {"output: T"},
         .attrs = {"limit: int", "T: {int32, int64}"},
         .doc = "The variable's value before it is raised by one; OutOfRange at the limit.",
         .traits = kWrites,
         .infer = scalar_output});
}

void add_reference(OpRegistry& r) {
  for (const char* name : {"VariableV2", "Variable"})
    r.add({.name = name,
           .outputs = {"ref: Ref(dtype)"},
           .attrs = {"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
           .doc = "A variable whose output refers to its buffer.",
           .traits = kStateful | kVariable,
           .infer = variable_shape});
  r.add({.name = "Assign",
         .inputs = {"ref: Ref(T)", "value: T"},
         .outputs = {"output_ref: Ref(T)"},
         .attrs = {"T: type", "validate_shape: bool = true", "use_locking: bool = true"},
         .doc = "Gives the variable a value; of another shape only when validate_shape is off.",
         .traits = kWrites | kAllowsUninitialized,
         .infer = assign_shape});
  for (const char* name : {"AssignAdd", "AssignSub"})
    r.add({.name = name,
           .inputs = {"ref: Ref(T)", "value: T"},
           .outputs = {"output_ref: Ref(T)"},
           .attrs = {"T: numbertype", "use_locking: bool = false"},
           .doc = "Adds the value to the variable (or subtracts it).",
           .traits = kWrites,
           .infer = update_shape});
  r.add({.name = "IsVariableInitialized",
         .inputs = {"ref: Ref(dtype)"},
         .outputs = {"is_initialized: bool"},
         .attrs = {"dtype: type"},
         .doc = "Whether the variable has a value.",
         .traits = kReads | kAllowsUninitialized | kNotDifferentiable,
         .infer = scalar_output});
  r.add({.name = "CountUpTo",
         .inputs = {"ref: Ref(T)"},
         .outputs = {"output: T"},
         .attrs = {"limit: int", "T: {int32, int64}"},
         .doc = "The variable's value before it is raised by one; OutOfRange at the limit.",
         .traits = kWrites,
         .infer = count_up_to_shape});
}

}  // namespace

void register_state(OpRegistry& r) {
  add_resource(r);
  add_reference(r);
}

}  // namespace sluice::graph::ops
