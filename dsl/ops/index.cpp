#include "dsl/ops/index.h"

#include <algorithm>

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"

namespace sluice::dsl {

Tensor where(const Operand& condition, const std::string& name, Loc loc) {
  Call c(graph_of({&condition}), name, "Where", loc);
  return c.make("Where", {c.in(condition, "condition", DType::kBool)});
}

namespace {

UniqueResult make_unique(const char* op, const Operand& x, DType out_idx, const std::string& name, Loc loc) {
  Call c(graph_of({&x}), name, op, loc);
  Node& n = c.make(op, {c.in(x, "x")}, {{"out_idx", out_idx}});
  return {n.output(0), n.output(1), n.num_outputs() > 2 ? Tensor(n.output(2)) : Tensor()};
}

}  // namespace

UniqueResult unique(const Operand& x, DType out_idx, const std::string& name, Loc loc) {
  return make_unique("Unique", x, out_idx, name, loc);
}
UniqueResult unique_with_counts(const Operand& x, DType out_idx, const std::string& name, Loc loc) {
  return make_unique("UniqueWithCounts", x, out_idx, name, loc);
}

Tensor boolean_mask(const Operand& tensor, const Operand& mask, int axis, const std::string& name, Loc loc) {
  Call c(graph_of({&tensor, &mask}), name, "boolean_mask", loc);
  Tensor x = c.in(tensor, "tensor"), m = c.in(mask, "mask", DType::kBool);
  SLUICE_REQUIRE_AT(loc, m.shape().known_rank(), Code::kInvalidArgument,
                    "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. "
                    "shape=[None] is ok, but shape=None is not.");
  const int masked = m.shape().rank();
  SLUICE_REQUIRE_AT(loc, masked > 0, Code::kInvalidArgument, "mask cannot be scalar.");
  SLUICE_REQUIRE_AT(loc, x.shape().known_rank(), Code::kInvalidArgument, "boolean_mask: the rank of ",
                    x.name(), " must be known");
  const int rank = x.shape().rank(), first = axis < 0 ? axis + rank : axis, last = first + masked;
  SLUICE_REQUIRE_AT(loc, first >= 0 && last <= rank, Code::kInvalidArgument, "boolean_mask: a mask of rank ",
                    masked, " does not fit at axis ", axis, " of ", x.shape());
  const Shape covered = x.shape().slice(first, last);
  SLUICE_REQUIRE_AT(loc, covered.compatible(m.shape()), Code::kInvalidArgument, "Shapes ", covered, " and ",
                    m.shape(), " are incompatible");
  auto part = [&](int from, int to) {
    StridedSliceMasks masks;
    masks.begin = from == 0;
    masks.end = to == rank;
    return strided_slice(shape(x, {}, loc), {from}, {to == rank ? 0 : to}, {1}, masks, {}, loc);
  };
  Tensor size = reduce_prod(part(first, last), {0}, {}, loc);
  Tensor before = part(0, first), after = part(last, rank);
  Tensor dims = concat({before, stack({size}, 0, "concat/values_1", loc), after}, 0, {}, loc);
  Tensor rows = reshape(x, dims, {}, loc);
  Tensor flags = reshape(m, {-1}, {}, loc);
  return gather(rows, squeeze(where(flags, {}, loc), {1}, {}, loc), first, {}, loc);
}

Tensor gather(const Variable& params, const Operand& indices, int axis, const std::string& name, Loc loc) {
  if (axis != 0 || !params.is_resource()) return gather(Operand(params, loc), indices, axis, name, loc);
  Graph& g = params.graph();
  Call c(g, name, "Gather", loc);
  Output i = c.in(indices, "indices", DType::kInt32);
  Node& rows = c.make("ResourceGather", {params.handle(), i}, {{"dtype", params.dtype()}});
  return identity(Tensor(rows), {}, loc);
}

Tensor embedding_lookup(const Variable& params, const Operand& ids, const std::string& name, Loc loc) {
  return gather(params, ids, 0, name.empty() ? "embedding_lookup" : name, loc);
}

namespace {

struct Place {
  Tensor part, row;
};

// Part and row of each id; both of the ids' type.
Place place_of(const PartitionedVariable& params, const Tensor& ids, PartitionStrategy strategy, Loc loc) {
  const auto parts = static_cast<int64_t>(params.parts().size());
  if (strategy == PartitionStrategy::kMod)
    return {floormod(ids, parts, {}, loc), floordiv(ids, parts, {}, loc)};
  // The first `extras` parts have a row more than the others.
  const int64_t rows = params.shape()[0] / parts, extras = params.shape()[0] % parts;
  const Tensor behind = subtract(ids, extras, "sub", loc);
  const Tensor part = maximum(floordiv(ids, rows + 1, {}, loc),
                              floordiv(behind, std::max<int64_t>(rows, 1), {}, loc), {}, loc);
  const Tensor row = where(less(part, extras, {}, loc), floormod(ids, rows + 1, {}, loc),
                           floormod(behind, std::max<int64_t>(rows, 1), {}, loc), {}, loc);
  return {part, row};
}

}  // namespace

Tensor embedding_lookup(const PartitionedVariable& params, const Operand& ids, PartitionStrategy strategy,
                        const std::string& name, Loc loc) {
  const std::vector<Variable>& parts = params.parts();
  SLUICE_REQUIRE_AT(loc, !parts.empty() && params.axis() == 0, Code::kInvalidArgument,
                    "embedding_lookup needs a table in parts along axis 0, '", params.name(), "' has ",
                    parts.size(), " along axis ", params.axis());
  if (parts.size() == 1) return embedding_lookup(parts[0], ids, name, loc);
  const auto n = static_cast<int64_t>(parts.size());
  Call c(parts[0].graph(), name, "embedding_lookup", loc);
  const Tensor all = c.in(ids, "ids", DType::kInt32), flat = reshape(all, {-1}, {}, loc);
  const Place place = place_of(params, flat, strategy, loc);
  const Output part = cast(place.part, DType::kInt32, {}, loc);
  const Output count = size(flat, {}, loc), zero = c.i32(0, "range/start"), one = c.i32(1, "range/delta");
  const Output positions = c.inner("Range", {zero, count, one}).output();
  Node& rows = c.inner("DynamicPartition", {place.row, part}, {{"num_partitions", n}});
  Node& where_to = c.inner("DynamicPartition", {positions, part}, {{"num_partitions", n}});
  std::vector<Output> in;
  for (int i = 0; i < static_cast<int>(n); ++i) in.push_back(where_to.output(i));
  for (int i = 0; i < static_cast<int>(n); ++i)
    in.push_back(gather(parts[static_cast<size_t>(i)], Tensor(rows.output(i)), 0, {}, loc));
  const Tensor found = c.inner("ParallelDynamicStitch", std::move(in)).output();
  std::vector<Operand> dims{shape(all, {}, loc)};
  std::vector<int32_t> row_dims(params.shape().begin() + 1, params.shape().end());
  if (!row_dims.empty()) dims.emplace_back(constant(c.graph(), row_dims, {}, "row_shape", loc));
  return c.make("Reshape", {found, dims.size() == 1 ? dims[0].tensor() : concat(dims, 0, {}, loc)});
}

Tensor gather_nd(const Operand& params, const Operand& indices, const std::string& name, Loc loc) {
  Call c(graph_of({&params, &indices}), name, "GatherNd", loc);
  Output p = c.in(params, "params");
  return c.make("GatherNd", {p, c.in(indices, "indices", DType::kInt32)});
}

Tensor gather_nd(const Variable& params, const Operand& indices, const std::string& name, Loc loc) {
  if (!params.is_resource()) return gather_nd(Operand(params, loc), indices, name, loc);
  Call c(params.graph(), name, "GatherNd", loc);
  Output i = c.in(indices, "indices", DType::kInt32);
  Node& slices = c.make("ResourceGatherNd", {params.handle(), i}, {{"dtype", params.dtype()}});
  return identity(Tensor(slices), {}, loc);
}

Tensor scatter_nd(const Operand& indices, const Operand& updates, const std::vector<int64_t>& shape,
                  const std::string& name, Loc loc) {
  Call c(graph_of({&indices, &updates}), name, "ScatterNd", loc);
  Output i = c.in(indices, "indices", DType::kInt32), u = c.in(updates, "updates");
  Output s = c.constant(Literal::vector<int64_t>(std::span<const int64_t>(shape)).cast(i.dtype()), "shape");
  return c.make("ScatterNd", {i, u, s});
}

namespace {

// Rows state the variable's type in another attribute than slices do.
enum class Into { kRows, kSlices };

Node& scatter(const char* op, Into into, const Variable& v, const Operand& indices, const Operand& updates,
              const std::string& name, Loc loc) {
  const std::string type = v.is_resource() ? cat("Resource", op) : op;
  Call c(v.graph(), name, type.c_str(), loc);
  Output i = c.in(indices, "indices", DType::kInt32), u = c.in(updates, "updates", v.dtype());
  SLUICE_REQUIRE_AT(loc, u.dtype() == v.dtype(), Code::kInvalidArgument, "Variable '", v.name(), "' is ",
                    v.dtype(), ", can't take updates of type ", u.dtype());
  AttrMap attrs;
  if (v.is_resource() && into == Into::kRows) attrs["dtype"] = v.dtype();
  return c.make(type.c_str(), {v.handle(), i, u}, std::move(attrs));
}

Tensor segments(const char* op, const Operand& data, const Operand& ids, const std::string& name, Loc loc) {
  Call c(graph_of({&data, &ids}), name, op, loc);
  Output d = c.in(data, "data");
  return c.make(op, {d, c.in(ids, "segment_ids", DType::kInt32)});
}

Tensor unsorted(const char* op, const Operand& data, const Operand& ids, int64_t n, const std::string& name,
                Loc loc) {
  Call c(graph_of({&data, &ids}), name, op, loc);
  Output d = c.in(data, "data"), i = c.in(ids, "segment_ids", DType::kInt32);
  return c.make(op, {d, i, c.i32(n, "num_segments")});
}

}  // namespace

Node& scatter_update(const Variable& v, const Operand& indices, const Operand& updates,
                     const std::string& name, Loc loc) {
  return scatter("ScatterUpdate", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_add(const Variable& v, const Operand& indices, const Operand& updates, const std::string& name,
                  Loc loc) {
  return scatter("ScatterAdd", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_sub(const Variable& v, const Operand& indices, const Operand& updates, const std::string& name,
                  Loc loc) {
  return scatter("ScatterSub", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_mul(const Variable& v, const Operand& indices, const Operand& updates, const std::string& name,
                  Loc loc) {
  return scatter("ScatterMul", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_div(const Variable& v, const Operand& indices, const Operand& updates, const std::string& name,
                  Loc loc) {
  return scatter("ScatterDiv", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_min(const Variable& v, const Operand& indices, const Operand& updates, const std::string& name,
                  Loc loc) {
  return scatter("ScatterMin", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_max(const Variable& v, const Operand& indices, const Operand& updates, const std::string& name,
                  Loc loc) {
  return scatter("ScatterMax", Into::kRows, v, indices, updates, name, loc);
}
Node& scatter_nd_update(const Variable& v, const Operand& indices, const Operand& updates,
                        const std::string& name, Loc loc) {
  return scatter("ScatterNdUpdate", Into::kSlices, v, indices, updates, name, loc);
}
Node& scatter_nd_add(const Variable& v, const Operand& indices, const Operand& updates,
                     const std::string& name, Loc loc) {
  return scatter("ScatterNdAdd", Into::kSlices, v, indices, updates, name, loc);
}
Node& scatter_nd_sub(const Variable& v, const Operand& indices, const Operand& updates,
                     const std::string& name, Loc loc) {
  return scatter("ScatterNdSub", Into::kSlices, v, indices, updates, name, loc);
}

Tensor segment_sum(const Operand& data, const Operand& segment_ids, const std::string& name, Loc loc) {
  return segments("SegmentSum", data, segment_ids, name, loc);
}
Tensor segment_mean(const Operand& data, const Operand& segment_ids, const std::string& name, Loc loc) {
  return segments("SegmentMean", data, segment_ids, name, loc);
}
Tensor segment_prod(const Operand& data, const Operand& segment_ids, const std::string& name, Loc loc) {
  return segments("SegmentProd", data, segment_ids, name, loc);
}
Tensor segment_max(const Operand& data, const Operand& segment_ids, const std::string& name, Loc loc) {
  return segments("SegmentMax", data, segment_ids, name, loc);
}
Tensor segment_min(const Operand& data, const Operand& segment_ids, const std::string& name, Loc loc) {
  return segments("SegmentMin", data, segment_ids, name, loc);
}
Tensor unsorted_segment_prod(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                             const std::string& name, Loc loc) {
  return unsorted("UnsortedSegmentProd", data, segment_ids, num_segments, name, loc);
}
Tensor unsorted_segment_max(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                            const std::string& name, Loc loc) {
  return unsorted("UnsortedSegmentMax", data, segment_ids, num_segments, name, loc);
}
Tensor unsorted_segment_min(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                            const std::string& name, Loc loc) {
  return unsorted("UnsortedSegmentMin", data, segment_ids, num_segments, name, loc);
}

}  // namespace sluice::dsl
