// Reading rows and elements by index.

#include <algorithm>

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"
#include "graph/scopes.h"
#include "graph/support/check.h"

namespace sluice::graph::ops {
namespace {

void gather_shape(InferContext& c) {
  const Shape params = c.with_rank_at_least(0, 1);
  c.set_output(0, c.input(1).concat(tail_of(params, 1)));
}

void gather_v2_shape(InferContext& c) {
  const Shape params = c.with_rank_at_least(0, 1);
  const Shape& indices = c.input(1);
  require_scalar(c, 2);
  int64_t batch = c.node().attr_or<int64_t>("batch_dims", 0);
  const auto axis = scalar_int(c, 2);
  if (indices.known_rank()) {
    require(c, batch >= -indices.rank() && batch <= indices.rank(), "Shape must be at least rank ", batch,
            " but is rank ", indices.rank());
    if (batch < 0) batch += indices.rank();
  }
  if (!params.known_rank() || !indices.known_rank() || !axis) {
    const bool ranks = params.known_rank() && indices.known_rank();
    return c.set_output(
        0, ranks ? Shape::of_rank(params.rank() + indices.rank() - 1 - static_cast<int>(batch)) : Shape());
  }
  const int64_t need = *axis < 0 ? -*axis : *axis + 1;
  require(c, need <= params.rank(), "Shape must be at least rank ", need, " but is rank ", params.rank());
  const auto at = static_cast<int>(*axis < 0 ? *axis + params.rank() : *axis);
  const auto b = static_cast<int>(batch);
  require(c, b <= at, "batch_dims (", b, ") must be less than or equal to axis (", at, ")");
  const Shape shared = c.merge(params.slice(0, b), indices.slice(0, b));
  c.set_output(0, shared.concat(params.slice(b, at))
                      .concat(indices.slice(b, indices.rank()))
                      .concat(params.slice(at + 1, params.rank())));
}

// Rows of a small tensor (axis 0), which is how shapes are picked apart.
void fold_gather(FoldContext& c) {
  const Node& n = c.node();
  if (n.num_inputs() > 2 && (fold_scalar(c, 2) != 0 || n.attr_or<int64_t>("batch_dims", 0) != 0)) return;
  const auto x = fold_input(c, 0), indices = c.input(1);
  if (!x || !indices || !indices->fully_known() || x->scalar) return;
  const Dims from = x->dims(), head = indices->dims();
  Dims to = head;
  to.insert(to.end(), from.begin() + 1, from.end());
  if (auto out = gather_ints(*x, to, [&](const Dims& index, Dims& at) {
        int64_t flat = 0;
        for (size_t i = 0; i < head.size(); ++i) flat = flat * head[i] + index[i];
        at[0] = *indices->values[static_cast<size_t>(flat)];
        for (size_t i = 1; i < from.size(); ++i) at[i] = index[head.size() + i - 1];
      }))
    c.set_output(0, std::move(*out));
}

// Slices of the rows that were read: dy as [n] + params.shape[1:], and the indices flat.
IndexedSlices row_slices(Grad& g, Output params_shape, Output indices) {
  const Output size = expand_dims(g, size_of(g, indices), 0);
  const Output shape = concat(g, {size, slice_vector(g, params_shape, 1, std::nullopt)}, 0);
  const Output values = g.op("Reshape", {g.dy(), shape});
  const Output flat = g.op("Reshape", {indices, size});
  return {values, flat, params_shape};
}

Gradients gather_gradient(Grad& g) { return {row_slices(g, shape_of(g, g.x()), g.x(1)), {}}; }

// x[begin:end] where the bounds are values; none leaves that side open.
Output slice_between(Grad& g, Output x, Output begin, Output end) {
  // TensorFlow makes the constants that stand for an open bound and for the stride before the scope opens.
  const Output open = g.scalar_i32(0), step = g.scalar_i32(1);
  NameScope scope(g.graph(), "strided_slice");
  const Output from = stack(g, {begin ? begin : open}), to = stack(g, {end ? end : open}, 0, "stack_1"),
               by = stack(g, {step}, 0, "stack_2");
  return g.op("StridedSlice", {x, from, to, by}, {{"begin_mask", begin ? 0 : 1}, {"end_mask", end ? 0 : 1}},
              scope.scope());
}

Output range_between(Grad& g, std::optional<int32_t> start, Output limit, Output begin = {}) {
  NameScope scope(g.graph(), "range");
  const Output from = begin ? begin : g.scalar_i32(*start, "start");
  const Output by = g.scalar_i32(1, "delta");
  return g.op("Range", {from, limit, by}, {}, scope.scope());
}

Output range_constant(Grad& g, int32_t limit) {
  NameScope scope(g.graph(), "range");
  const Output from = g.scalar_i32(0, "start"), to = g.scalar_i32(limit, "limit"),
               by = g.scalar_i32(1, "delta");
  return g.op("Range", {from, to, by}, {}, scope.scope());
}

// concat with one constant part among the values, which TensorFlow names by its place.
Output concat_with(Grad& g, std::vector<Output> values, size_t place, int32_t constant) {
  NameScope scope(g.graph(), "concat");
  values.insert(values.begin() + static_cast<int64_t>(place),
                g.constant_i32({constant}, cat("values_", place)));
  values.push_back(g.scalar_i32(0, "axis"));
  return g.op("ConcatV2", std::move(values), {}, scope.scope());
}

Output concat_with_stacked(Grad& g, std::vector<Output> values, size_t place, Output scalar) {
  NameScope scope(g.graph(), "concat");
  values.insert(values.begin() + static_cast<int64_t>(place), stack(g, {scalar}, 0, cat("values_", place)));
  values.push_back(g.scalar_i32(0, "axis"));
  return g.op("ConcatV2", std::move(values), {}, scope.scope());
}

Output ones_vector(Grad& g, Output length) {  // tile([1], [length])
  NameScope scope(g.graph(), "Tile");
  const Output one = g.constant_i32({1}, "input"), n = stack(g, {length}, 0, "multiples");
  return g.op("Tile", {one, n}, {}, scope.scope());
}
Output ones_vector(Grad& g, int32_t length) {
  NameScope scope(g.graph(), "Tile");
  const Output one = g.constant_i32({1}, "input"), n = g.constant_i32({length}, "multiples");
  return g.op("Tile", {one, n}, {}, scope.scope());
}

// The indices offset by their batch's place when the batch dimensions and the gathered one are laid flat.
Output batch_indices(Grad& g, Output params_shape, Output indices, int batch) {
  const DType type = indices.dtype();
  const Output shape = cast(g, params_shape, type);
  Output stride = g.scalar_like(indices, 1, "ones"), out = indices;
  for (int dim = batch; dim > 0; --dim) {
    const Output length = slice_vector(g, shape, dim - 1, std::nullopt, true);
    stride = mul(g, stride, slice_vector(g, shape, dim, std::nullopt, true));
    const Output start = g.scalar_like(indices, 0, "zeros"), step = g.scalar_like(indices, 1, "ones");
    const Output offsets = mul(g, g.op("Range", {start, length, step}, {}, "range"), stride);
    const Output before = ones_vector(g, dim - 1);
    const Output after = ones_vector(g, with_constant(g, "Sub", "sub", rank_of(g, indices), dim));
    const Output across = concat_with_stacked(g, {before, after}, 1, cast(g, length, DType::kInt32));
    out = add(g, out, g.op("Reshape", {offsets, across}));
  }
  return out;
}

// Any axis: bring the gathered dimension (behind the batch dimensions) to the front, sum the segments, and
// turn back.
Output gather_axis_gradient(Grad& g, Output params_shape, Output axis, int32_t batch) {
  const Output size = expand_dims(g, size_of(g, g.x(1)), 0);
  static_cast<void>(size);  // TensorFlow makes it before it looks at the axis
  const Output outer = slice_between(g, params_shape, {}, axis);
  const Output from_axis = slice_between(g, params_shape, axis, {});
  const Output inner = slice_vector(g, from_axis, 1, std::nullopt);
  const Output values_shape = concat_with(g, {outer, inner}, 1, -1);
  const Output values_dims = size_of(g, values_shape), outer_dims = size_of(g, outer);
  const Output batch_axes = range_constant(g, batch);
  const Output between = range_between(g, batch, outer_dims);
  const Output inner_axes =
      range_between(g, {}, values_dims, with_constant(g, "AddV2", "add", outer_dims, 1));
  const Output values = g.op("Reshape", {g.dy(), values_shape});
  const Output perm = concat_with_stacked(g, {batch_axes, between, inner_axes}, 1, outer_dims);
  Output moved = g.op("Transpose", {values, perm}, {}, "transpose");
  const Output moved_shape = gather0(g, params_shape, perm);

  Output segments;  // params_shape[axis]
  {
    const Output next = with_constant(g, "AddV2", "add", axis, 1);
    NameScope scope(g.graph(), "strided_slice");
    const Output from = stack(g, {axis}), to = stack(g, {next}, 0, "stack_1"),
                 by = g.constant_i32({1}, "stack_2");
    segments = g.op("StridedSlice", {params_shape, from, to, by}, {{"shrink_axis_mask", 1}}, scope.scope());
  }
  const Output flat_size = expand_dims(g, size_of(g, g.x(1)), 0);
  Output indices = g.x(1), batch_shape, flat_shape;
  if (batch > 0) {
    const Output shape = shape_of(g, moved);
    batch_shape = slice_vector(g, shape, 0, batch);
    const Output rest = slice_vector(g, slice_vector(g, shape, batch, std::nullopt), 1, std::nullopt);
    const Output batches = reduce(g, "Prod", batch_shape, {0}, false);
    flat_shape = concat_with(g, {rest}, 0, -1);
    segments = mul(g, segments, batches);
    indices = batch_indices(g, moved_shape, indices, batch);
    moved = g.op("Reshape", {moved, flat_shape});
  }
  indices = g.op("Reshape", {indices, flat_size});
  Output sums = g.op("UnsortedSegmentSum", {moved, indices, segments});
  if (batch > 0) sums = g.op("Reshape", {sums, concat(g, {batch_shape, flat_shape}, 0)});
  const Output shifted = with_constant(g, "AddV2", "add", between, 1);
  const Output back = concat_with(g, {batch_axes, shifted, inner_axes}, 2, batch);
  const Output dx = g.op("Transpose", {sums, back}, {}, "transpose");
  return g.op("Reshape", {dx, shape_of(g, g.x())});
}

Gradients gather_v2_gradient(Grad& g) {
  const Output params_shape = shape_of(g, g.x());
  int64_t batch = g.node().attr_or<int64_t>("batch_dims", 0);
  if (batch < 0) {
    SLUICE_REQUIRE(g.x(1).shape().known_rank(), Code::kInvalidArgument, "Gradient of '", g.node().name(),
                   "': batch_dims is negative and the rank of indices unknown");
    batch += g.x(1).shape().rank();
  }
  const auto axis = constant_value(g.x(2));
  if (axis && axis->to_int64s().front() == 0 && batch == 0)
    return {row_slices(g, params_shape, g.x(1)), {}, {}};
  const Output at = cast(g, g.x(2), DType::kInt32);
  return {gather_axis_gradient(g, params_shape, at, static_cast<int32_t>(batch)), {}, {}};
}

void gather_nd_shape(InferContext& c) {
  const Shape& params = c.input(0);
  const Shape indices = c.with_rank_at_least(1, 1);
  if (!indices.known_rank() || !indices.known_dim(-1) || !params.known_rank()) return;
  const int64_t depth = indices.dim(-1);
  require(c, depth <= params.rank(),
          "indices.shape[-1] must be <= params.rank, but saw indices shape: ", indices,
          " and params shape: ", params);
  c.set_output(0, indices.slice(0, -1).concat(params.slice(static_cast<int>(depth), params.rank())));
}

bool indexes_rows(Output indices) {
  const Shape& s = indices.shape();
  return s.known_rank() && s.rank() == 2 && s.dim(1) == 1;
}

Gradients gather_nd_gradient(Grad& g) {
  const Output shape = shape_of(g, g.x(), g.x(1).dtype());
  if (indexes_rows(g.x(1))) {
    const Output dy = g.dy();
    const Output rows = g.op("Squeeze", {g.x(1)}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
    return {IndexedSlices{dy, rows, shape}, {}};
  }
  return {g.op("ScatterNd", {g.x(1), g.dy(), shape}), {}};
}

}  // namespace

void register_array_gather(OpRegistry& r) {
  r.add({.name = "Gather",
         .inputs = {"params: Tparams", "indices: Tindices"},
         .outputs = {"output: Tparams"},
         .attrs = {"validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"},
         .doc = "Rows of params: output[i, …] = params[indices[i], …].",
         .infer = gather_shape,
         .grad = gather_gradient,
         .fold = fold_gather});
  r.add(
      {.name = "GatherV2",
       .inputs = {"params: Tparams", "indices: Tindices", "axis: Taxis"},
       .outputs = {"output: Tparams"},
       .attrs = {"batch_dims: int = 0", "Tparams: type", "Tindices: {int32, int64}", "Taxis: {int32, int64}"},
       .doc = "Slices of params along an axis, by index; the first batch_dims dimensions go together.",
       .infer = gather_v2_shape,
       .grad = gather_v2_gradient,
       .fold = fold_gather});
  r.add({.name = "GatherNd",
         .inputs = {"params: Tparams", "indices: Tindices"},
         .outputs = {"output: Tparams"},
         .attrs = {"Tparams: type", "Tindices: {int32, int64}"},
         .doc = "Slices of params whose leading indices are the rows of `indices`.",
         .infer = gather_nd_shape,
         .grad = gather_nd_gradient,
         .later_attrs = {"bad_indices_policy: string = ''"}});
}

}  // namespace sluice::graph::ops
