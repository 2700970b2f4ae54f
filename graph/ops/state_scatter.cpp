// Writes to rows (Scatter*) and slices (ScatterNd*) of variables by index, in reference and resource form,
// and their forms on values.

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

constexpr uint32_t kWrites = kStateful | kWritesVariable | kNotDifferentiable;
constexpr const char* kIndices = "Tindices: {int32, int64}";
constexpr const char* kPolicy = "bad_indices_policy: string = ''";

// updates = indices.shape + variable.shape[1:], or a scalar for every row.
void check_rows(InferContext& c, const Shape& variable) {
  const Shape& updates = c.input(2);
  if (updates.known_rank() && updates.rank() == 0) return;
  if (variable.known_rank()) require(c, variable.rank() >= 1, "Shape must be at least rank 1 but is rank 0");
  c.merge(updates, c.input(1).concat(tail_of(variable, 1)));
}

void resource_rows_shape(InferContext& c) { check_rows(c, c.handle_shape(0)); }

void ref_rows_shape(InferContext& c) {
  check_rows(c, c.input(0));
  c.set_output(0, c.input(0));
}

void resource_nd_shape(InferContext& c) { check_scatter_nd(c, c.input(1), c.input(2), c.handle_shape(0)); }
void nd_shape(InferContext& c) { c.set_output(0, check_scatter_nd(c, c.input(1), c.input(2), c.input(0))); }

Gradients non_aliasing_gradient(Grad& g) {
  const Output dy = g.dy();
  return {dy, {}, g.op("GatherNd", {dy, g.x(1)})};
}

struct Row {
  const char* what;  // "Add": ScatterAdd, ResourceScatterAdd
  const char* doc;
  const char* types;
  bool locks;  // use_locking of the reference form
};

constexpr Row kRows[] = {
    {"Add", "Adds the updates to rows of the variable; duplicates add up.", "numbertype", false},
    {"Div", "Divides rows of the variable by the updates, one after another where an index repeats.",
     "numbertype", false},
    {"Max", "Raises rows of the variable to the updates, element by element.", "realnumbertype", false},
    {"Min", "Lowers rows of the variable to the updates, element by element.", "realnumbertype", false},
    {"Mul", "Multiplies rows of the variable by the updates, one after another where an index repeats.",
     "numbertype", false},
    {"Sub", "Subtracts the updates from rows of the variable; duplicates add up.", "numbertype", false},
    {"Update", "Writes the updates to rows of the variable; the last one wins where an index repeats.",
     "type", true},
};

std::string attr(const char* name, const char* types) { return cat(name, ": ", types); }

void add_rows(OpRegistry& r, const Row& row) {
  r.add({.name = cat("Scatter", row.what),
         .inputs = {"ref: Ref(T)", "indices: Tindices", "updates: T"},
         .outputs = {"output_ref: Ref(T)"},
         .attrs = {attr("T", row.types), kIndices,
                   row.locks ? "use_locking: bool = true" : "use_locking: bool = false"},
         .doc = row.doc,
         .traits = kWrites,
         .infer = ref_rows_shape});
  r.add({.name = cat("ResourceScatter", row.what),
         .inputs = {"resource: resource", "indices: Tindices", "updates: dtype"},
         .attrs = {attr("dtype", row.types), kIndices},
         .doc = row.doc,
         .traits = kWrites,
         .infer = resource_rows_shape});
}

constexpr Row kSlices[] = {
    {"Add", "Adds the updates to the slices of the variable at their indices; duplicates add up.",
     "numbertype", false},
    {"Max", "Raises the slices of the variable at the indices to the updates, element by element.", "type",
     false},
    {"Min", "Lowers the slices of the variable at the indices to the updates, element by element.", "type",
     false},
    {"Sub", "Subtracts the updates from the slices of the variable at their indices; duplicates add up.",
     "numbertype", false},
    {"Update", "Writes the updates to the slices of the variable at their indices; the last one wins.",
     "type", true},
};

void add_slices(OpRegistry& r, const Row& row) {
  r.add({.name = cat("ScatterNd", row.what),
         .inputs = {"ref: Ref(T)", "indices: Tindices", "updates: T"},
         .outputs = {"output_ref: Ref(T)"},
         .attrs = {attr("T", row.types), kIndices,
                   row.locks ? "use_locking: bool = true" : "use_locking: bool = false"},
         .doc = row.doc,
         .traits = kWrites,
         .infer = nd_shape,
         .later_attrs = {kPolicy}});
  r.add({.name = cat("ResourceScatterNd", row.what),
         .inputs = {"ref: resource", "indices: Tindices", "updates: T"},
         .attrs = {attr("T", row.types), kIndices, "use_locking: bool = true"},
         .doc = row.doc,
         .traits = kWrites,
         .infer = resource_nd_shape,
         .later_attrs = {kPolicy}});
}

}  // namespace

void register_state_scatter(OpRegistry& r) {
  for (const Row& row : kRows) add_rows(r, row);
  for (const Row& row : kSlices) add_slices(r, row);
  r.add({.name = "ScatterNdNonAliasingAdd",
         .inputs = {"input: T", "indices: Tindices", "updates: T"},
         .outputs = {"output: T"},
         .attrs = {"T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
                   "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}",
                   kIndices},
         .doc = "The input plus the updates at their indices, in the input's bytes where nobody else reads "
                "them.",
         .infer = nd_shape,
         .grad = non_aliasing_gradient,
         .later_attrs = {kPolicy}});
}

}  // namespace sluice::graph::ops
