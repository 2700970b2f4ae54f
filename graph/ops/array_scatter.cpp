// Writing rows and elements by index.

#include <algorithm>

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"
#include "graph/scopes.h"

namespace sluice::graph::ops {

Shape check_scatter_nd(InferContext& c, const Shape& indices, const Shape& updates, const Shape& target) {
  if (!indices.known_rank() || !updates.known_rank()) return target;
  require(c, indices.rank() >= 1, "Shape must be at least rank 1 but is rank 0");
  const int outer = indices.rank() - 1;
  const std::string head =
      cat("Dimensions [0,", outer, ") of indices[shape=", indices, "] = ", indices.slice(0, outer),
          " must match dimensions [0,", outer, ") of updates[shape=", updates, "] = ");
  require(c, updates.rank() >= outer, head, updates, ": Shape must be at least rank ", outer, " but is rank ",
          updates.rank());
  merge_because(c, indices.slice(0, outer), updates.slice(0, outer),
                cat(head, updates.slice(0, outer), ": "));
  if (!target.known_rank() || !indices.known_dim(-1)) return target;
  const auto depth = static_cast<int>(indices.dim(-1));
  require(c, depth <= target.rank(), "The inner ", depth, " dimensions of indices[shape=", indices,
          "] index into an input of rank ", target.rank());
  const Shape rest = target.slice(depth, target.rank()), given = updates.slice(outer, updates.rank());
  merge_because(c, rest, given,
                cat("Dimensions [", depth, ",", target.rank(), ") of input[shape=", target, "] = ", rest,
                    " must match dimensions [", outer, ",", updates.rank(), ") of updates[shape=", updates,
                    "] = ", given, ": "));
  return target;
}

namespace {

void scatter_nd_shape(InferContext& c) {
  c.with_rank(2, 1);
  c.set_output(0, check_scatter_nd(c, c.input(0), c.input(1), c.shape_value(2)));
}

void tensor_scatter_shape(InferContext& c) {
  c.set_output(0, check_scatter_nd(c, c.input(1), c.input(2), c.input(0)));
}

Gradients scatter_nd_gradient(Grad& g) { return {{}, g.op("GatherNd", {g.dy(), g.x()}), {}}; }

Gradients tensor_scatter_update_gradient(Grad& g) {
  const Output dy = g.dy(), updates = g.op("GatherNd", {dy, g.x(1)}), kept = g.op("Identity", {dy});
  const Output zeros = g.zeros_like(g.x(2));
  return {g.op("TensorScatterUpdate", {kept, g.x(1), zeros}), {}, updates};
}

Gradients tensor_scatter_add_gradient(Grad& g, bool negate) {
  const Output dy = g.dy();
  const Output updates = g.op("GatherNd", {dy, g.x(1)}), tensor = g.op("Identity", {dy});
  return {tensor, {}, negate ? neg(g, updates) : updates};
}

// The winners of an element share its gradient.
Gradients tensor_scatter_extreme_gradient(Grad& g) {
  const Output dy = g.dy(), indices = g.x(1);
  const Output kept = cast(g, g.op("Equal", {g.x(), g.y()}), dy.dtype());
  const Output best = g.op("GatherNd", {g.y(), indices});
  const Output won = cast(g, g.op("Equal", {g.x(2), best}), dy.dtype());
  const Output winners = g.op("TensorScatterAdd", {kept, indices, won});
  const Output shared = g.op("RealDiv", {dy, g.op("Maximum", {winners, ones_like(g, winners)})});
  return {mul(g, kept, shared), {}, mul(g, won, g.op("GatherNd", {shared, indices}))};
}

// DynamicStitch: inputs indices[0..n), data[0..n).

void dynamic_stitch_shape(InferContext& c) {
  const int n = c.num_inputs() / 2;
  Shape rest;
  int64_t rows = 0;
  bool known = true;
  for (int i = 0; i < n; ++i) {
    const Shape &indices = c.input(i), &data = c.input(n + i);
    if (const auto v = ints(c, i); v && v->fully_known()) {
      for (int64_t x : v->with_unknowns()) rows = std::max(rows, x + 1);
    } else if (indices.elements() != 0) {
      known = false;
    }
    if (!indices.known_rank() || !data.known_rank()) continue;
    require(c, data.rank() >= indices.rank(), "Shape must be at least rank ", indices.rank(), " but is rank ",
            data.rank());
    for (int d = 0; d < indices.rank(); ++d) c.merge_dim(data.dim(d), indices.dim(d));
    rest = c.merge(rest, data.slice(indices.rank(), data.rank()));
  }
  c.set_output(0, rest.known_rank() ? Shape{known ? rows : kUnknownDim}.concat(rest) : Shape());
}

// Scalars by index, as the shape arithmetic of reductions uses it.
void fold_dynamic_stitch(FoldContext& c) {
  const int n = c.node().num_inputs() / 2;
  std::vector<std::optional<int64_t>> out;
  for (int i = 0; i < n; ++i) {
    const auto indices = fold_known(c, i);
    const auto data = fold_input(c, n + i);
    if (!indices || !data || data->values.size() != indices->size()) return;
    for (size_t k = 0; k < indices->size(); ++k) {
      const int64_t at = (*indices)[k];
      if (at < 0 || at >= kMaxFoldElements) return;
      if (static_cast<int64_t>(out.size()) <= at) out.resize(static_cast<size_t>(at) + 1);
      out[static_cast<size_t>(at)] = data->values[k];
    }
  }
  c.set_output(0, make_ints({static_cast<int64_t>(out.size())}, std::move(out)));
}

// Every source reads its rows of dy; a sparse dy is made dense by segment first.
Gradients dynamic_stitch_gradient(Grad& g) {
  const int n = g.num_inputs() / 2;
  Gradients r(static_cast<size_t>(g.num_inputs()));
  Output dy;
  if (g.raw_dy().is_slices()) {
    const IndexedSlices s = g.raw_dy().slices;
    const Output rows = slice_vector(g, shape_of(g, g.y()), 0, 1, true);
    dy = g.op("UnsortedSegmentSum", {s.values, s.indices, rows});
  } else {
    dy = g.dy();
  }
  for (int i = 0; i < n; ++i) r[static_cast<size_t>(n + i)] = gather0(g, dy, g.x(i));
  return r;
}

void dynamic_partition_shape(InferContext& c) {
  const Shape &data = c.input(0), &partitions = c.input(1);
  Shape out;
  if (data.known_rank() && partitions.known_rank()) {
    require(c, data.rank() >= partitions.rank(), "Shape must be at least rank ", partitions.rank(),
            " but is rank ", data.rank());
    for (int d = 0; d < partitions.rank(); ++d) c.merge_dim(data.dim(d), partitions.dim(d));
    out = Shape{kUnknownDim}.concat(data.slice(partitions.rank(), data.rank()));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
}

// Positions partitioned the same way say where each part's gradient belongs.
Gradients dynamic_partition_gradient(Grad& g) {
  std::vector<Output> dys;
  for (int i = 0; i < g.node().num_outputs(); ++i) dys.push_back(dy_or_zeros(g, i));
  const Output shape = shape_of(g, g.x(1));
  const Output axis = g.constant_i32({0});
  const Output count = g.op("Prod", {shape, axis});
  const Output positions = g.op("Reshape", {range_by(g, count, 1), shape});
  const int64_t parts = g.attr<int64_t>("num_partitions");
  Node& where = g.node_op("DynamicPartition", {positions, g.x(1)}, {{"num_partitions", parts}});
  std::vector<Output> inputs;
  for (int i = 0; i < where.num_outputs(); ++i) inputs.push_back(where.output(i));
  inputs.insert(inputs.end(), dys.begin(), dys.end());
  const Output whole = g.op("DynamicStitch", std::move(inputs));
  return {g.op("Reshape", {whole, shape_of(g, g.x())}), {}};
}

}  // namespace

void register_array_scatter(OpRegistry& r) {
  r.add({.name = "ScatterNd",
         .inputs = {"indices: Tindices", "updates: T", "shape: Tindices"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tindices: {int32, int64}"},
         .doc = "Zeros of `shape` plus the updates at their indices; duplicates add.",
         .infer = scatter_nd_shape,
         .grad = scatter_nd_gradient,
         .later_attrs = {"bad_indices_policy: string = ''"}});
  const std::vector<std::string> inputs = {"tensor: T", "indices: Tindices", "updates: T"};
  const std::vector<std::string> attrs = {"T: type", "Tindices: {int32, int64}"};
  r.add({.name = "TensorScatterUpdate",
         .inputs = inputs,
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "The tensor with the updates in place of the slices at their indices.",
         .infer = tensor_scatter_shape,
         .grad = tensor_scatter_update_gradient,
         .later_attrs = {"bad_indices_policy: string = ''"}});
  r.add({.name = "TensorScatterAdd",
         .inputs = inputs,
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "The tensor plus the updates at their indices.",
         .infer = tensor_scatter_shape,
         .grad = [](Grad& g) { return tensor_scatter_add_gradient(g, false); },
         .later_attrs = {"bad_indices_policy: string = ''"}});
  r.add({.name = "TensorScatterSub",
         .inputs = inputs,
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "The tensor minus the updates at their indices.",
         .infer = tensor_scatter_shape,
         .grad = [](Grad& g) { return tensor_scatter_add_gradient(g, true); },
         .later_attrs = {"bad_indices_policy: string = ''"}});
  r.add({.name = "TensorScatterMax",
         .inputs = inputs,
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "The tensor with the slices at the indices raised to the updates, element by element.",
         .infer = tensor_scatter_shape,
         .grad = tensor_scatter_extreme_gradient,
         .later_attrs = {"bad_indices_policy: string = ''"}});
  r.add({.name = "TensorScatterMin",
         .inputs = inputs,
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "The tensor with the slices at the indices lowered to the updates, element by element.",
         .infer = tensor_scatter_shape,
         .grad = tensor_scatter_extreme_gradient,
         .later_attrs = {"bad_indices_policy: string = ''"}});
  for (const char* name : {"DynamicStitch", "ParallelDynamicStitch"})
    r.add({.name = name,
           .inputs = {"indices: N * int32", "data: N * T"},
           .outputs = {"merged: T"},
           .attrs = {"N: int >= 1", "T: type"},
           .doc = "merged[indices[m][i]] = data[m][i]; the last one wins (any, in the parallel form).",
           .infer = dynamic_stitch_shape,
           .grad = dynamic_stitch_gradient,
           .fold = fold_dynamic_stitch});
  r.add({.name = "DynamicPartition",
         .inputs = {"data: T", "partitions: int32"},
         .outputs = {"outputs: num_partitions * T"},
         .attrs = {"num_partitions: int >= 1", "T: type"},
         .doc = "Deals the rows of data out to the outputs that `partitions` names.",
         .traits = kDynamicShape,
         .infer = dynamic_partition_shape,
         .grad = dynamic_partition_gradient});
}

}  // namespace sluice::graph::ops
