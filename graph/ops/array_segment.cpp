// Reductions of rows that share a segment id: ids in any order with their number given (UnsortedSegment*), or
// ascending ids (Segment*).

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"
#include "graph/ops/type_sets.h"
#include "graph/scopes.h"

namespace sluice::graph::ops {
namespace {

void unsorted_segment_shape(InferContext& c) {
  const Shape &data = c.input(0), &ids = c.input(1);
  require_scalar(c, 2);
  const auto n = scalar_int(c, 2);
  require(c, !n || *n >= 0, "Dimension size, given by scalar input 2, must be non-negative but is ",
          n.value_or(0));
  if (!data.known_rank() || !ids.known_rank()) return;
  require(c, data.rank() >= ids.rank(), "Shape must be at least rank ", ids.rank(), " but is rank ",
          data.rank());
  for (int d = 0; d < ids.rank(); ++d) c.merge_dim(data.dim(d), ids.dim(d));
  c.set_output(0, Shape{n.value_or(kUnknownDim)}.concat(data.slice(ids.rank(), data.rank())));
}

void segment_shape(InferContext& c) {
  const Shape &data = c.input(0), ids = c.with_rank(1, 1);
  if (!data.known_rank()) return;
  require(c, data.rank() >= 1, "Shape must be at least rank 1 but is rank 0");
  c.merge_dim(data.dim(0), ids.dim(0));
  int64_t segments = kUnknownDim;
  if (const auto values = c.value(1)) {
    const std::vector<int64_t> v = values->to_int64s();
    segments = v.empty() ? 0 : v.back() + 1;
  }
  c.set_output(0, Shape{segments}.concat(data.slice(1, data.rank())));
}

// Rows of a result by id; those of negative ids, which the reduction dropped, are zero.
struct Rows {
  Output values, ids, kept;  // ids: negative ones became 0; kept: bool, of the values' shape
};

Output kept_rows(Grad& g, Output ids, Output rows) {
  Output kept = with_constant(g, "GreaterEqual", "GreaterEqual", ids, 0);
  const Shape &r = rows.shape(), &k = kept.shape();
  if (r.known_rank() && k.known_rank()) {
    for (int i = k.rank(); i < r.rank(); ++i) kept = expand_dims(g, kept, -1);
  } else {
    const Output shape = shape_of(g, kept);
    const Output more = g.op("Sub", {rank_of(g, rows), rank_of(g, kept)}, {}, "sub");
    NameScope scope(g.graph(), "ones");
    const Output dims = stack(g, {more}, 0, "packed"), one = g.scalar_i32(1);
    const Output ones = g.op("Fill", {dims, one}, {}, scope.scope());
    kept = g.op("Reshape", {kept, concat(g, {shape, ones}, 0)});
  }
  Output all;
  {
    NameScope scope(g.graph(), "ones_like");
    const Output shape = shape_of(g, rows), yes = g.constant(Literal::scalar(true));
    all = g.op("Fill", {shape, yes}, {}, scope.scope());
  }
  return g.op("LogicalAnd", {kept, all}, {}, "and");
}

Rows gather_drop_negatives(Grad& g, Output params, Output ids) {
  Rows r;
  r.ids = g.op("Maximum", {ids, g.zeros_like(ids)});
  const Output rows = gather0(g, params, r.ids);
  r.kept = kept_rows(g, ids, rows);
  const Output zeros = g.zeros_like(rows);
  r.values = g.op("Select", {r.kept, rows, zeros});
  return r;
}

Gradients unsorted_sum_gradient(Grad& g) { return {gather_drop_negatives(g, g.dy(), g.x(1)).values, {}, {}}; }

// The rows that equal the extreme share its gradient.
Gradients unsorted_extreme_gradient(Grad& g) {
  const Output dy = g.dy(), ids = g.x(1);
  const Rows best = gather_drop_negatives(g, g.y(), ids);
  Output selected = g.op("Equal", {g.x(), best.values});
  selected = g.op("LogicalAnd", {selected, best.kept});
  const Output count = g.op("UnsortedSegmentSum", {cast(g, selected, dy.dtype()), ids, g.x(2)});
  const Output rows = gather0(g, truediv(g, dy, count), best.ids);
  const Output zeros = g.zeros_like(rows);
  return {g.op("Select", {selected, rows, zeros}), {}, {}};
}

// y / x, where x is not 0; beside a single 0 the product of the others; nothing where there are two.
Gradients unsorted_prod_gradient(Grad& g) {
  const Output x = g.x(), ids = g.x(1), segments = g.x(2);
  const Output zero = with_constant(g, "Equal", "Equal", x, 0);
  const Output zeros = g.op("UnsortedSegmentSum", {cast(g, zero, DType::kInt32), ids, segments});
  Output dy = g.dy();
  dy = g.op("Select", {with_constant(g, "Greater", "Greater", zeros, 1), g.zeros_like(dy), dy});
  const Output others = g.op("Select", {zero, ones_like(g, x), x});
  const Output product = g.op("UnsortedSegmentProd", {others, ids, segments});
  const Output at = g.op("Maximum", {ids, g.zeros_like(ids)});
  const Output whole = gather0(g, g.y(), at), rest = gather0(g, product, at);
  // Dividing by 1 where x is 0 keeps what is not selected free of NaN.
  const Output slope = g.op("Select", {zero, rest, truediv(g, whole, others)});
  return {mul(g, gather_drop_negatives(g, dy, ids).values, slope), {}, {}};
}

Gradients sum_gradient(Grad& g) { return {gather0(g, g.dy(), g.x(1)), {}}; }

Gradients mean_gradient(Grad& g) {
  const Output dy = g.dy(), ids = g.x(1);
  Output ones;
  {
    const Output rank = with_constant(g, "Sub", "sub", rank_of(g, g.x()), 1);
    const Output more = g.op("Fill", {expand_dims(g, rank, 0), g.scalar_i32(1)});
    ones = g.op("Fill", {concat(g, {shape_of(g, ids), more}, 0), g.scalar_like(dy, 1)});
  }
  const Output counts = g.op("SegmentSum", {ones, ids});
  return {gather0(g, truediv(g, dy, counts), ids), {}};
}

Gradients extreme_gradient(Grad& g) {
  const Output dy = g.dy(), ids = g.x(1);
  const Output zeros = g.zeros_like(g.x());
  const Output selected = g.op("Equal", {g.x(), gather0(g, g.y(), ids)});
  const Output count = g.op("SegmentSum", {cast(g, selected, dy.dtype()), ids});
  return {g.op("Select", {selected, gather0(g, truediv(g, dy, count), ids), zeros}), {}};
}

void add_unsorted(OpRegistry& r, const char* name, const char* types, const char* doc, GradFn grad) {
  r.add({.name = name,
         .inputs = {"data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"},
         .outputs = {"output: T"},
         .attrs = {types, "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = int32"},
         .doc = doc,
         .infer = unsorted_segment_shape,
         .grad = std::move(grad)});
}

void add_sorted(OpRegistry& r, const char* name, const char* types, const char* doc, GradFn grad) {
  r.add({.name = name,
         .inputs = {"data: T", "segment_ids: Tindices"},
         .outputs = {"output: T"},
         .attrs = {types, "Tindices: {int32, int64}"},
         .doc = doc,
         .traits = kDynamicShape,
         .infer = segment_shape,
         .grad = std::move(grad)});
}

}  // namespace

void register_array_segment(OpRegistry& r) {
  add_unsorted(r, "UnsortedSegmentSum", kNumberTypes,
               "Sums of the rows with the same segment id; negative ids are dropped.", unsorted_sum_gradient);
  add_unsorted(
      r, "UnsortedSegmentProd", kNumberTypes,
      "Products of the rows with the same segment id (1 where there is none); negative ids are dropped.",
      unsorted_prod_gradient);
  add_unsorted(r, "UnsortedSegmentMax", kRealTypes,
               "Largest elements of the rows with the same segment id, the type's lowest value where there "
               "is none; negative ids are dropped.",
               unsorted_extreme_gradient);
  add_unsorted(r, "UnsortedSegmentMin", kRealTypes,
               "Smallest elements of the rows with the same segment id, the type's largest value where there "
               "is none; negative ids are dropped.",
               unsorted_extreme_gradient);
  add_sorted(r, "SegmentSum", kNumberTypes,
             "Sums of the rows with the same segment id; ids ascend, ids without rows give 0.", sum_gradient);
  add_sorted(r, "SegmentMean", kNumberTypes,
             "Means of the rows with the same segment id; ids ascend, ids without rows give 0.",
             mean_gradient);
  add_sorted(r, "SegmentProd", kNumberTypes,
             "Products of the rows with the same segment id; ids ascend, ids without rows give 1.", nullptr);
  add_sorted(r, "SegmentMax", kRealTypes,
             "Largest elements of the rows with the same segment id; ids ascend, ids without rows give 0.",
             extreme_gradient);
  add_sorted(r, "SegmentMin", kRealTypes,
             "Smallest elements of the rows with the same segment id; ids ascend, ids without rows give 0.",
             extreme_gradient);
}

}  // namespace sluice::graph::ops
