// Joining tensors along an axis and taking them apart: Concat, Split, Pack and their kin.

#include <algorithm>

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"
#include "graph/scopes.h"
#include "graph/support/check.h"

namespace sluice::graph::ops {
namespace {

constexpr size_t kMostSlices = 16;  // TensorFlow's switch from Slice per input to one SplitV

// Concat: `axis` is input number `axis_input`, the values are inputs [first, last).
void concat_shape(InferContext& c, int axis_input, int first, int last) {
  require_scalar(c, axis_input);
  int rank = -1;
  for (int i = first; i < last && rank < 0; ++i) rank = c.input(i).rank();
  const auto axis = scalar_int(c, axis_input);
  if (rank < 0) return c.set_output(0, Shape());
  require(c, rank > 0, "Can't concatenate scalars (use tf.stack instead)");
  if (!axis) {
    for (int i = first; i < last; ++i) c.with_rank(i, rank);
    return c.set_output(0, Shape::of_rank(rank));
  }
  const int64_t need = *axis < 0 ? -*axis : *axis + 1;
  require(c, need <= rank, "Shape must be at least rank ", need, " but is rank ", rank);
  const auto at = static_cast<int>(*axis < 0 ? *axis + rank : *axis);
  Shape before = Shape::of_rank(at), after = Shape::of_rank(rank - at - 1);
  int64_t sum = 0;
  for (int i = first; i < last; ++i) {
    const Shape s = c.with_rank(i, rank);
    before = c.merge(before, s.slice(0, at));
    after = c.merge(after, s.slice(at + 1, rank));
    sum = add_dims(sum, s.dim(at));
  }
  c.set_output(0, before.concat(Shape{sum}).concat(after));
}

void concat_v1_shape(InferContext& c) { concat_shape(c, 0, 1, c.num_inputs()); }
void concat_v2_shape(InferContext& c) { concat_shape(c, c.num_inputs() - 1, 0, c.num_inputs() - 1); }

void fold_concat(FoldContext& c, int axis_input, int first, int last) {
  const auto axis = fold_scalar(c, axis_input);
  if (!axis) return;
  std::vector<PartialInts> parts;
  for (int i = first; i < last; ++i) {
    auto p = fold_input(c, i);
    if (!p) return;
    parts.push_back(std::move(*p));
  }
  const auto rank = static_cast<int64_t>(parts.front().dims().size());
  for (const PartialInts& p : parts)
    if (static_cast<int64_t>(p.dims().size()) != rank) return;
  const int64_t at = *axis < 0 ? *axis + rank : *axis;
  if (at < 0 || at >= rank) return;
  c.set_output(0, concat_ints(parts, static_cast<int>(at)));
}

void fold_concat_v1(FoldContext& c) { fold_concat(c, 0, 1, c.node().num_inputs()); }
void fold_concat_v2(FoldContext& c) {
  fold_concat(c, c.node().num_inputs() - 1, 0, c.node().num_inputs() - 1);
}

// The shapes of all values: constants while they are known, one ShapeN otherwise.
std::vector<Output> value_shapes(Grad& g, const std::vector<Output>& values) {
  std::vector<Output> shapes;
  for (Output v : values) {
    shapes.push_back(shape_of(g, v));
    if (v.shape().fully_known()) continue;
    Node& all = g.node_op("ShapeN", values);
    shapes.clear();
    for (size_t i = 0; i < values.size(); ++i) shapes.push_back(all.output(static_cast<int>(i)));
    break;
  }
  return shapes;
}

std::vector<GradValue> slices_of_dense(Grad& g, Output dy, Output axis, const std::vector<Output>& values) {
  const Output at = g.op("FloorMod", {axis, rank_of(g, values.front())}, {}, "mod");
  const std::vector<Output> shapes = value_shapes(g, values);
  std::vector<GradValue> out;
  if (values.size() > kMostSlices) {
    const Output all = stack(g, shapes, 1);
    Output row;
    {
      NameScope scope(g.graph(), "Slice");
      Output begin;
      {
        NameScope inner(g.graph(), "begin");
        const Output zero = g.scalar_i32(0, "1");
        begin = g.op("Pack", {at, zero}, {{"axis", 0}}, inner.scope());
      }
      const Output size = g.constant_i32({1, -1}, "size");
      row = g.op("Slice", {all, begin, size}, {}, scope.scope());
    }
    const Output sizes = g.op("Squeeze", {row});
    Node& split =
        g.node_op("SplitV", {dy, sizes, at}, {{"num_split", static_cast<int64_t>(values.size())}}, "split");
    for (size_t i = 0; i < values.size(); ++i) out.emplace_back(split.output(static_cast<int>(i)));
    return out;
  }
  std::vector<Output> inputs{at};
  inputs.insert(inputs.end(), shapes.begin(), shapes.end());
  Node& offset = g.node_op("ConcatOffset", inputs);
  for (size_t i = 0; i < values.size(); ++i)
    out.emplace_back(g.op("Slice", {dy, offset.output(static_cast<int>(i)), shapes[i]}));
  return out;
}

// Rows of the slices that fall into each value, rebased to it.
std::vector<GradValue> slices_by_row(Grad& g, const IndexedSlices& dy, Output axis,
                                     const std::vector<Output>& values) {
  const Output at = g.op("FloorMod", {axis, rank_of(g, values.front())}, {}, "mod");
  std::vector<Output> shapes;
  for (Output v : values) shapes.push_back(shape_of(g, v));
  std::vector<GradValue> out;
  const DType index = dy.indices.dtype();
  auto as_index = [&](Output x) { return index == DType::kInt32 ? x : g.op("Cast", {x}, {{"DstT", index}}); };
  Output start = g.scalar_like(dy.indices, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const Output end = g.op("AddV2", {start, as_index(gather0(g, shapes[i], at))}, {}, "add");
    const Output from = g.op("GreaterEqual", {dy.indices, start}), to = g.op("Less", {dy.indices, end});
    const Output where = g.op("Where", {g.op("LogicalAnd", {from, to})});
    const Output rows = g.op("Squeeze", {where}, {{"squeeze_dims", std::vector<int64_t>{1}}});
    const Output indices = g.op("Sub", {gather0(g, dy.indices, rows), start}, {}, "sub");
    out.emplace_back(IndexedSlices{gather0(g, dy.values, rows), indices, shapes[i]});
    start = end;
  }
  return out;
}

// The values' part of every slice: rows stay, columns of the axis are cut.
std::vector<GradValue> slices_by_column(Grad& g, const IndexedSlices& dy, Output axis, bool negative,
                                        const std::vector<Output>& values) {
  const Output at = g.op("FloorMod", {axis, rank_of(g, values.front())}, {}, "mod");
  if (negative) rank_of(g, dy.values);
  std::vector<Output> shapes;
  for (Output v : values) shapes.push_back(shape_of(g, v));
  // A vector that is 1 at the axis and 0 elsewhere, and a running begin.
  const Output rank = shape_of(g, shapes.front());
  auto zeros = [&](Output dims) {
    NameScope scope(g.graph(), "zeros");
    const Output zero = g.scalar_i32(0);
    return g.op("Fill", {dims, zero}, {}, scope.scope());
  };
  const Output before = zeros(expand_dims(g, at, 0));
  const Output beyond = g.op("Sub", {rank, at}, {}, "sub");
  const Output after = zeros(with_constant(g, "Sub", "sub", beyond, 1));
  Output mask;
  {
    NameScope scope(g.graph(), "concat");
    const Output one = g.constant_i32({1}, "values_1"), along = g.scalar_i32(0, "axis");
    mask = g.op("ConcatV2", {before, one, after, along}, {}, scope.scope());
  }
  Output begin = zeros(rank);
  std::vector<GradValue> out;
  for (size_t i = 0; i < values.size(); ++i) {
    Output tail, size;
    {
      NameScope scope(g.graph(), "Slice");
      const Output one = g.constant_i32({1}, "begin"), rest = g.constant_i32({-1}, "size");
      tail = g.op("Slice", {shapes[i], one, rest}, {}, scope.scope());
    }
    {
      NameScope scope(g.graph(), "concat");
      const Output all = g.constant_i32({-1}, "values_0"), along = g.scalar_i32(0, "axis");
      size = g.op("ConcatV2", {all, tail, along}, {}, scope.scope());
    }
    const Output part = g.op("Slice", {dy.values, begin, size});
    out.emplace_back(IndexedSlices{part, dy.indices, shapes[i]});
    begin = g.op("AddV2", {begin, g.op("Mul", {shapes[i], mask}, {}, "mul")}, {}, "Add");
  }
  return out;
}

Gradients concat_gradient(Grad& g, int axis_input, int first, int last) {
  Gradients r(static_cast<size_t>(g.num_inputs()));
  if (!g.has_dy()) return r;
  const GradValue dy = g.raw_dy();
  if (last - first == 1) {
    r[static_cast<size_t>(first)] = dy;
    return r;
  }
  std::vector<Output> values;
  for (int i = first; i < last; ++i) values.push_back(g.x(i));
  const Output axis = g.x(axis_input);
  std::vector<GradValue> parts;
  if (!dy.is_slices()) {
    parts = slices_of_dense(g, dy.dense, axis, values);
  } else {
    const auto known = constant_value(axis);
    SLUICE_REQUIRE(known, Code::kInvalidArgument,
                   "Can only compute IndexedSlices gradient with statically-known concat_dim; that of '",
                   g.node().name(), "' is not");
    const int64_t k = known->to_int64s().front();
    SLUICE_REQUIRE(k >= 0 || dy.slices.values.shape().known_rank(), Code::kInvalidArgument,
                   "Can only compute IndexedSlices gradient with negative concat_dim when first value rank "
                   "is statically-known; that of '",
                   g.node().name(), "' is not");
    const int64_t at = k < 0 ? k + dy.slices.values.shape().rank() : k;
    parts = at == 0 ? slices_by_row(g, dy.slices, axis, values)
                    : slices_by_column(g, dy.slices, axis, k < 0, values);
  }
  std::move(parts.begin(), parts.end(), r.begin() + first);
  return r;
}

Gradients concat_v1_gradient(Grad& g) { return concat_gradient(g, 0, 1, g.num_inputs()); }
Gradients concat_v2_gradient(Grad& g) {
  return concat_gradient(g, g.num_inputs() - 1, 0, g.num_inputs() - 1);
}

void concat_offset_shape(InferContext& c) {
  require_scalar(c, 0);
  for (int i = 1; i < c.num_inputs(); ++i) c.set_output(i - 1, c.with_rank(i, 1));
}

void fold_concat_offset(FoldContext& c) {
  const auto axis = fold_scalar(c, 0);
  if (!axis) return;
  std::optional<int64_t> offset = 0;
  for (int i = 1; i < c.node().num_inputs(); ++i) {
    const auto s = fold_input(c, i);
    if (!s) return;
    const auto rank = static_cast<int64_t>(s->values.size());
    const int64_t at = *axis < 0 ? *axis + rank : *axis;
    if (at < 0 || at >= rank) return;
    std::vector<std::optional<int64_t>> out(s->values.size(), 0);
    out[static_cast<size_t>(at)] = offset;
    c.set_output(i - 1, make_ints({rank}, std::move(out)));
    const auto& d = s->values[static_cast<size_t>(at)];
    offset = offset && d ? std::optional<int64_t>(*offset + *d) : std::nullopt;
  }
}

// Split into equal parts: input 0 the axis, input 1 the value. SplitV: value, sizes, axis.

int split_axis(InferContext& c, int64_t axis, int rank, int input) {
  require(c, axis >= -rank && axis < rank, "Dimension size, given by scalar input ", input,
          " must be in range [-", rank, ", ", rank, ")");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void split_shape(InferContext& c) {
  require_scalar(c, 0);
  const auto axis = scalar_int(c, 0);
  Shape out = c.input(1);
  if (!axis) {
    out = out.known_rank() ? Shape::of_rank(out.rank()) : Shape();
  } else if (out.known_rank()) {
    require(c, *axis >= -out.rank() && *axis < out.rank(), "Dimension size, given by scalar input ", *axis,
            " must be in range [-", out.rank(), ", ", out.rank(), ")");
    const auto at = static_cast<int>(*axis < 0 ? *axis + out.rank() : *axis);
    out.set_dim(at, divide_dims(c, out.dim(at), c.num_outputs(),
                                "\n\tNumber of ways to split should evenly divide the split dimension"));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
}

void split_v_shape(InferContext& c) {
  const Shape sizes_shape = c.with_rank(1, 1);
  require_scalar(c, 2);
  const int n = c.num_outputs();
  require(c, !sizes_shape.known_dim(0) || sizes_shape.dim(0) == n,
          "Length of size_splits should be equal to num_outputs");
  const auto axis = scalar_int(c, 2);
  const Shape& x = c.input(0);
  if (!x.known_rank() || !axis) {
    const Shape out = n == 1 ? x : x.known_rank() ? Shape::of_rank(x.rank()) : Shape();
    for (int i = 0; i < n; ++i) c.set_output(i, out);
    return;
  }
  const int at = split_axis(c, *axis, x.rank(), 2);
  const auto sizes = ints(c, 1);
  const int64_t total = x.dim(at);
  Dims parts(static_cast<size_t>(n), kUnknownDim);
  if (n == 1) {
    parts[0] = total;
  } else if (sizes) {
    int64_t sum = 0;
    int rest = -1, unknown = 0;
    for (int i = 0; i < n; ++i) {
      const auto& s = sizes->values[static_cast<size_t>(i)];
      if (!s) {
        ++unknown;
      } else if (*s == -1) {
        require(c, rest < 0, "size_splits can only have one -1");
        rest = i;
      } else {
        require(c, *s >= 0, "Split size at index ", i, " must be >= 0. Got: ", *s);
        parts[static_cast<size_t>(i)] = *s;
        sum += *s;
      }
    }
    if (total >= 0 && unknown == 0) {
      if (rest >= 0) {
        require(c, total >= sum, "Split size at index ", rest, " must be >= 0. Got: ", total - sum);
        parts[static_cast<size_t>(rest)] = total - sum;
      } else {
        require(c, sum == total, "can't split axis of size ", total, " into pieces of size ",
                dims_string(parts));
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    Shape out = x;
    out.set_dim(at, parts[static_cast<size_t>(i)]);
    c.set_output(i, out);
  }
}

void fold_parts(FoldContext& c, int value, int axis_input, bool equal) {
  const auto x = fold_input(c, value);
  const auto axis = fold_scalar(c, axis_input);
  if (!x || !axis) return;
  const Dims from = x->dims();
  const auto rank = static_cast<int64_t>(from.size());
  const auto at = static_cast<size_t>(*axis < 0 ? *axis + rank : *axis);
  if (at >= from.size()) return;
  const int n = c.node().num_outputs();
  std::vector<int64_t> sizes(static_cast<size_t>(n), from[at] / n);
  if (!equal) {
    const auto given = fold_known(c, 1);
    if (!given || static_cast<int>(given->size()) != n) return;
    sizes = *given;
    int64_t sum = 0;
    for (int64_t s : sizes) sum += std::max<int64_t>(s, 0);
    for (int64_t& s : sizes)
      if (s < 0) s = from[at] - sum;
  }
  int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    Dims to = from;
    to[at] = sizes[static_cast<size_t>(i)];
    if (to[at] < 0) return;
    if (auto part = gather_ints(*x, to, [&](const Dims& index, Dims& source) {
          source = index;
          source[at] += offset;
        }))
      c.set_output(i, std::move(*part));
    offset += sizes[static_cast<size_t>(i)];
  }
}

Gradients split_gradient(Grad& g, int value, int axis_input) {
  Gradients r(static_cast<size_t>(g.num_inputs()));
  std::vector<Output> inputs;
  for (int i = 0; i < g.node().num_outputs(); ++i) inputs.push_back(dy_or_zeros(g, i));
  if (inputs.size() == 1) {
    r[static_cast<size_t>(value)] = inputs.front();
    return r;
  }
  inputs.push_back(g.x(axis_input));
  r[static_cast<size_t>(value)] = g.op("ConcatV2", std::move(inputs), {}, "concat");
  return r;
}

// Pack and Unpack.

int stack_axis(InferContext& c, int64_t axis, int rank) {
  require(c, axis >= -rank && axis < rank, "Invalid axis: ", axis, "; must be in [", -rank, ",", rank, ")");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void pack_shape(InferContext& c) {
  Shape s = c.input(c.num_inputs() - 1);
  for (int i = c.num_inputs() - 2; i >= 0; --i) s = merge_because(c, c.input(i), s, "");
  if (!s.known_rank()) return c.set_output(0, Shape());
  const int at = stack_axis(c, c.attr<int64_t>("axis"), s.rank() + 1);
  Dims out = s.dims();
  out.insert(out.begin() + at, c.num_inputs());
  c.set_output(0, Shape(std::move(out)));
}

void fold_pack(FoldContext& c) {
  std::vector<PartialInts> parts;
  size_t at = 0;
  for (int i = 0; i < c.node().num_inputs(); ++i) {
    auto p = fold_input(c, i);
    if (!p) return;
    Dims dims = p->dims();
    const int64_t axis = c.node().attr<int64_t>("axis"), rank = static_cast<int64_t>(dims.size()) + 1;
    at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    dims.insert(dims.begin() + static_cast<int64_t>(at), 1);
    parts.push_back(with_dims(std::move(*p), dims));
    if (parts.back().dims() != parts.front().dims()) return;
  }
  c.set_output(0, concat_ints(parts, static_cast<int>(at)));
}

Gradients pack_gradient(Grad& g) {
  Node& parts = g.node_op("Unpack", {g.dy()},
                          {{"num", static_cast<int64_t>(g.num_inputs())}, {"axis", g.attr<int64_t>("axis")}},
                          "unstack");
  Gradients r;
  for (int i = 0; i < g.num_inputs(); ++i) r.emplace_back(parts.output(i));
  return r;
}

void unpack_shape(InferContext& c) {
  const Shape& x = c.input(0);
  if (!x.known_rank()) return unknown_outputs(c);
  const int at = stack_axis(c, c.attr<int64_t>("axis"), x.rank());
  require_dim(c, x.dim(at), c.num_outputs());
  Dims out = x.dims();
  out.erase(out.begin() + at);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape(out));
}

void fold_unpack(FoldContext& c) {
  const auto x = fold_input(c, 0);
  if (!x) return;
  Dims to = x->dims();
  const int64_t axis = c.node().attr<int64_t>("axis"), rank = static_cast<int64_t>(to.size());
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return;
  to.erase(to.begin() + at);
  for (int i = 0; i < c.node().num_outputs(); ++i)
    if (auto part = gather_ints(*x, to, [&](const Dims& index, Dims& source) {
          std::copy(index.begin(), index.begin() + at, source.begin());
          source[static_cast<size_t>(at)] = i;
          std::copy(index.begin() + at, index.end(), source.begin() + at + 1);
        }))
      c.set_output(i, std::move(*part));
}

Gradients unpack_gradient(Grad& g) {
  std::vector<Output> parts;
  for (int i = 0; i < g.node().num_outputs(); ++i) parts.push_back(dy_or_zeros(g, i));
  return {stack(g, std::move(parts), g.attr<int64_t>("axis"))};
}

void add_concat(OpRegistry& r) {
  r.add({.name = "Concat",
         .inputs = {"concat_dim: int32", "values: N * T"},
         .outputs = {"output: T"},
         .attrs = {"N: int >= 2", "T: type"},
         .doc = "Joins tensors along an existing dimension.",
         .infer = concat_v1_shape,
         .grad = concat_v1_gradient,
         .fold = fold_concat_v1});
  r.add({.name = "ConcatV2",
         .inputs = {"values: N * T", "axis: Tidx"},
         .outputs = {"output: T"},
         .attrs = {"N: int >= 2", "T: type", "Tidx: {int32, int64} = int32"},
         .doc = "Joins tensors along an existing dimension.",
         .infer = concat_v2_shape,
         .grad = concat_v2_gradient,
         .fold = fold_concat_v2});
  r.add({.name = "ConcatOffset",
         .inputs = {"concat_dim: int32", "shape: N * int32"},
         .outputs = {"offset: N * int32"},
         .attrs = {"N: int >= 2"},
         .doc = "Where each part begins in the concatenation of tensors of these shapes.",
         .traits = kNotDifferentiable,
         .infer = concat_offset_shape,
         .fold = fold_concat_offset,
         .later_attrs = {"shape_type: {int32, int64} = int32"}});
}

void add_split(OpRegistry& r) {
  r.add({.name = "Split",
         .inputs = {"split_dim: int32", "value: T"},
         .outputs = {"output: num_split * T"},
         .attrs = {"num_split: int >= 1", "T: type"},
         .doc = "Cuts a tensor into equal parts.",
         .infer = split_shape,
         .grad = [](Grad& g) { return split_gradient(g, 1, 0); },
         .fold = [](FoldContext& c) { fold_parts(c, 1, 0, true); }});
  r.add({.name = "SplitV",
         .inputs = {"value: T", "size_splits: Tlen", "split_dim: int32"},
         .outputs = {"output: num_split * T"},
         .attrs = {"num_split: int >= 1", "T: type", "Tlen: {int32, int64} = int64"},
         .doc = "Cuts a tensor into parts of the given sizes, one of which may be -1: what remains.",
         .infer = split_v_shape,
         .grad = [](Grad& g) { return split_gradient(g, 0, 2); },
         .fold = [](FoldContext& c) { fold_parts(c, 0, 2, false); }});
}

void add_stack(OpRegistry& r) {
  r.add({.name = "Pack",
         .inputs = {"values: N * T"},
         .outputs = {"output: T"},
         .attrs = {"N: int >= 1", "T: type", "axis: int = 0"},
         .doc = "Joins tensors along a new dimension.",
         .infer = pack_shape,
         .grad = pack_gradient,
         .fold = fold_pack});
  r.add({.name = "Unpack",
         .inputs = {"value: T"},
         .outputs = {"output: num * T"},
         .attrs = {"num: int >= 0", "T: type", "axis: int = 0"},
         .doc = "Cuts a tensor along a dimension, which vanishes.",
         .infer = unpack_shape,
         .grad = unpack_gradient,
         .fold = fold_unpack});
}

}  // namespace

void register_array_join(OpRegistry& r) {
  add_concat(r);
  add_split(r);
  add_stack(r);
}

}  // namespace sluice::graph::ops
