// Cutting regions out of tensors, padding them, repeating them and turning them round.

#include <algorithm>

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"
#include "graph/scopes.h"
#include "graph/support/check.h"

namespace sluice::graph::ops {
namespace {

void slice_shape(InferContext& c) {
  Shape begin_shape = c.with_rank(1, 1), size_shape = c.with_rank(2, 1);
  const int64_t n = c.merge(begin_shape, size_shape).dim(0);
  const Shape& x = c.input(0);
  require(c, n < 0 || !x.known_rank() || n == x.rank(), "Shape must be rank ", n, " but is rank ", x.rank());
  const auto begin = ints(c, 1), size = ints(c, 2);
  const int64_t rank = x.known_rank() ? x.rank() : n;
  if (rank < 0) return c.set_output(0, Shape());
  Shape out = Shape::of_rank(static_cast<int>(rank));
  for (int i = 0; i < rank; ++i) {
    const auto u = static_cast<size_t>(i);
    const auto b = element(begin, u), s = element(size, u);
    const int64_t dim = x.dim(i);
    if (b && dim >= 0) {
      subtract_dims(c, dim, *b);
      require(c, *b >= 0, "Expected begin[", i, "] in [0, ", dim, "], but got ", *b);
      require(c, !s || *s == -1 || (*s >= 0 && *s <= dim - *b), "Expected size[", i, "] in [0, ", dim - *b,
              "], but got ", s.value_or(0));
    }
    if (s && *s >= 0)
      out.set_dim(i, *s);
    else if (s && b)
      out.set_dim(i, subtract_dims(c, dim, *b));
  }
  c.set_output(0, out);
}

void fold_slice(FoldContext& c) {
  const auto x = fold_input(c, 0);
  const auto begin = fold_known(c, 1), size = fold_known(c, 2);
  if (!x || !begin || !size) return;
  const Dims from = x->dims();
  if (begin->size() != from.size() || size->size() != from.size()) return;
  Dims to(from.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = (*size)[i] < 0 ? from[i] - (*begin)[i] : (*size)[i];
    if (to[i] < 0) return;
  }
  if (auto out = gather_ints(*x, to, [&](const Dims& index, Dims& at) {
        for (size_t i = 0; i < index.size(); ++i) at[i] = index[i] + (*begin)[i];
      }))
    c.set_output(0, std::move(*out));
}

Gradients slice_gradient(Grad& g) {
  const DType type = g.x(1).dtype();
  const Output dy = g.dy(), rank = rank_of(g, g.x()), size = shape_of(g, g.y(), type);
  Output column;  // [rank, 1]
  {
    NameScope scope(g.graph(), "stack");
    const Output one = g.scalar_i32(1, "1");
    column = g.op("Pack", {rank, one}, {{"axis", 0}}, scope.scope());
  }
  const Output before = g.op("Reshape", {g.x(1), column});
  const Output whole = shape_of(g, g.x(), type);
  const Output rest = g.op("Sub", {g.op("Sub", {whole, size}, {}, "sub"), g.x(1)}, {}, "sub");
  const Output after = g.op("Reshape", {rest, column});
  return {g.op("Pad", {dy, concat(g, {before, after}, 1)}), {}, {}};
}

// StridedSlice.

struct Masks {
  explicit Masks(const Node& n)
      : begin(n.attr<int64_t>("begin_mask")),
        end(n.attr<int64_t>("end_mask")),
        ellipsis(n.attr<int64_t>("ellipsis_mask")),
        new_axis(n.attr<int64_t>("new_axis_mask")),
        shrink(n.attr<int64_t>("shrink_axis_mask")) {}
  AttrMap attrs() const {
    return {{"begin_mask", begin},
            {"end_mask", end},
            {"ellipsis_mask", ellipsis},
            {"new_axis_mask", new_axis},
            {"shrink_axis_mask", shrink}};
  }
  StridedSliceSpec resolve(const Shape& x, const PartialInts& b, const PartialInts& e,
                           const PartialInts& s) const {
    return resolve_strided_slice(x, b, e, s, begin, end, ellipsis, new_axis, shrink);
  }
  int64_t begin, end, ellipsis, new_axis, shrink;
};

void strided_slice_shape(InferContext& c) {
  Shape spec = c.with_rank(1, 1);
  for (int i : {2, 3}) spec = c.merge(spec, c.with_rank(i, 1));
  const Shape& x = c.input(0);
  const auto strides = ints(c, 3);
  if (!strides || !strides->fully_known() || !x.known_rank()) return c.set_output(0, Shape());
  auto unknown = [&] {
    return make_ints(strides->dims(), std::vector<std::optional<int64_t>>(strides->values.size()));
  };
  const auto begin = ints(c, 1), end = ints(c, 2);
  try {
    c.set_output(0, Shape(Masks(c.node())
                              .resolve(x, begin ? *begin : unknown(), end ? *end : unknown(), *strides)
                              .final_dims));
  } catch (const Error& e) {
    c.fail(e.message());
  }
}

void fold_strided_slice(FoldContext& c) {
  const auto x = fold_input(c, 0), begin = c.input(1), end = c.input(2), strides = c.input(3);
  if (!x || !begin || !end || !strides || !strides->fully_known()) return;
  StridedSliceSpec spec;
  try {
    spec = Masks(c.node()).resolve(Shape(x->dims()), *begin, *end, *strides);
  } catch (const Error&) {
    return;  // the shape rule says what is wrong
  }
  for (int64_t d : spec.final_dims)
    if (d < 0) return;
  for (size_t i = 0; i < spec.begin.size(); ++i)
    if (spec.begin[i] < 0) return;  // an index that is not known
  if (auto out = gather_ints(*x, spec.processing_dims, [&](const Dims& index, Dims& at) {
        for (size_t i = 0; i < index.size(); ++i) at[i] = spec.begin[i] + index[i] * spec.stride[i];
      }))
    c.set_output(0, with_dims(std::move(*out), spec.final_dims));
}

Gradients strided_slice_gradient(Grad& g) {
  const Output dy = g.dy();
  const Output shape = shape_of(g, g.x(), g.x(1).dtype());
  // TensorFlow reads known arguments back and makes them constants of the gradient op.
  NameScope scope(g.graph(), "StridedSliceGrad");
  auto argument = [&](Output x, const char* name) {
    const auto known = constant_value(x);
    return known ? g.constant(*known, name) : x;
  };
  const Output s = argument(shape, "shape"), begin = argument(g.x(1), "begin"), end = argument(g.x(2), "end"),
               strides = argument(g.x(3), "strides");
  return {g.op("StridedSliceGrad", {s, begin, end, strides, dy}, Masks(g.node()).attrs(), scope.scope()),
          {},
          {},
          {}};
}

void strided_slice_grad_shape(InferContext& c) {
  c.with_rank(0, 1);
  c.set_output(0, c.shape_value(0));
}

Gradients strided_slice_grad_gradient(Grad& g) {
  Gradients r(5);
  r[4] = g.op("StridedSlice", {g.dy(), g.x(1), g.x(2), g.x(3)}, Masks(g.node()).attrs());
  return r;
}

// Padding. `sign` +1 pads, -1 is MirrorPadGrad, which folds the padding back.

void pad_shape(InferContext& c, int sign) {
  const Shape paddings_shape = c.with_rank(1, 2);
  require_dim(c, paddings_shape.dim(1), 2);
  const Shape& x = c.input(0);
  const int64_t n = paddings_shape.dim(0);
  require(c, n < 0 || !x.known_rank() || n == x.rank(), "Shape must be rank ", n, " but is rank ", x.rank());
  const int64_t rank = x.known_rank() ? x.rank() : n;
  if (rank < 0) return c.set_output(0, Shape());
  const auto paddings = ints(c, 1);
  Shape out = Shape::of_rank(static_cast<int>(rank));
  const std::string mode = c.node().attr_or<std::string>("mode", "");
  for (int i = 0; paddings && i < rank; ++i) {
    const auto u = static_cast<size_t>(2 * i);
    const auto &before = paddings->values[u], &after = paddings->values[u + 1];
    require(c, (!before || *before >= 0) && (!after || *after >= 0), "Paddings must be non-negative");
    if (!before || !after) continue;
    const int64_t dim = x.dim(i);
    if (sign > 0 && dim >= 0 && mode == "REFLECT")
      require(c, *before < dim && *after < dim, "paddings must be less than the dimension size: ", *before,
              ", ", *after, " not less than ", dim);
    if (sign > 0 && dim >= 0 && mode == "SYMMETRIC")
      require(c, *before <= dim && *after <= dim,
              "paddings must be no greater than the dimension size: ", *before, ", ", *after,
              " greater than ", dim);
    out.set_dim(i, sign > 0 ? add_dims(dim, *before + *after) : subtract_dims(c, dim, *before + *after));
  }
  c.set_output(0, out);
}

// The part of dy that the input was: begins at the paddings' first column.
Gradients pad_gradient(Grad& g) {
  Gradients r(static_cast<size_t>(g.num_inputs()));
  const Output dy = g.dy(), rank = rank_of(g, g.x());
  Output column;
  {
    NameScope scope(g.graph(), "stack");
    const Output one = g.scalar_i32(1, "1");
    column = g.op("Pack", {rank, one}, {{"axis", 0}}, scope.scope());
  }
  const DType type = g.x(1).dtype();
  if (type != DType::kInt32) column = cast(g, column, type);
  Output before;
  {
    NameScope scope(g.graph(), "Slice");
    const Output zero = g.constant(Literal::vector<int32_t>({0, 0}).cast(type), "begin");
    before = g.op("Slice", {g.x(1), zero, column}, {}, scope.scope());
  }
  const Output begin = reshape_to(g, before, {-1});
  r[0] = g.op("Slice", {dy, begin, shape_of(g, g.x(), type)});
  return r;
}

Gradients mirror_pad_gradient(Grad& g, const char* op) {
  return {g.op(op, {g.dy(), g.x(1)}, {{"mode", g.attr<std::string>("mode")}}), {}};
}

void tile_shape(InferContext& c) {
  const Shape multiples_shape = c.with_rank(1, 1);
  const Shape& x = c.input(0);
  const int64_t n = multiples_shape.dim(0);
  require(c, n < 0 || !x.known_rank() || n == x.rank(), "Shape must be rank ", x.rank(), " but is rank ", n);
  const int64_t rank = x.known_rank() ? x.rank() : n;
  if (rank < 0) return c.set_output(0, Shape());
  const auto multiples = ints(c, 1);
  Shape out = Shape::of_rank(static_cast<int>(rank));
  for (int i = 0; multiples && i < rank; ++i) {
    const auto& m = multiples->values[static_cast<size_t>(i)];
    require(c, !m || *m >= 0, "Expected multiples[", i, "] >= 0, but got ", m.value_or(0));
    if (m) out.set_dim(i, multiply_dims(x.dim(i), *m));
  }
  c.set_output(0, out);
}

void fold_tile(FoldContext& c) {
  const auto x = fold_input(c, 0);
  const auto multiples = fold_known(c, 1);
  if (!x || !multiples) return;
  const Dims from = x->dims();
  if (multiples->size() != from.size()) return;
  Dims to(from.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = from[i] * (*multiples)[i];
    if (to[i] < 0) return;
  }
  if (auto out = gather_ints(*x, to, [&](const Dims& index, Dims& at) {
        for (size_t i = 0; i < index.size(); ++i) at[i] = index[i] % from[i];
      }))
    c.set_output(0, std::move(*out));
}

// dy seen as [m0, d0, m1, d1 …], summed over the even axes. Slices (of rows) are first added up by row.
Gradients tile_gradient(Grad& g) {
  const GradValue dy = g.raw_dy();
  const Output shape = shape_of(g, g.x());
  const Output pairs = transpose(g, stack(g, {cast(g, g.x(1), DType::kInt32), shape}), {1, 0});
  Output split = reshape_to(g, pairs, {-1});
  const Output axes = range_by(g, size_of(g, split), 2);
  Output rows = dy.dense;
  if (dy.is_slices()) {
    const Output first = slice_vector(g, shape, 0, 1, true);
    const DType index = dy.slices.indices.dtype();
    const Output within = g.op("FloorMod", {dy.slices.indices, cast(g, first, index)}, {}, "mod");
    rows = g.op("UnsortedSegmentSum", {dy.slices.values, within, first});
    const Output tail = slice_vector(g, split, 1, std::nullopt);
    NameScope scope(g.graph(), "concat");
    const Output one = g.constant_i32({1}, "values_0"), along = g.scalar_i32(0, "axis");
    split = g.op("ConcatV2", {one, tail, along}, {}, scope.scope());
  }
  return {g.op("Sum", {g.op("Reshape", {rows, split}), axes}), {}};
}

void reverse_shape(InferContext& c) {
  const Shape dims_shape = c.with_rank(1, 1);
  const Shape& x = c.input(0);
  const int64_t n = dims_shape.dim(0);
  require(c, n < 0 || !x.known_rank() || n == x.rank(), "Shape must be rank ", n, " but is rank ", x.rank());
  require(c, x.rank() <= 8, "reverse does not work on tensors with more than 8 dimensions");
  c.set_output(0, x.known_rank() || n < 0 ? x : Shape::of_rank(static_cast<int>(n)));
}

void reverse_v2_shape(InferContext& c) {
  c.with_rank(1, 1);
  const Shape& x = c.input(0);
  require(c, x.rank() <= 8, "reverse does not work on tensors with more than 8 dimensions");
  const auto axes = ints(c, 1);
  if (axes && x.known_rank()) {
    std::vector<bool> seen(static_cast<size_t>(x.rank()));
    for (size_t i = 0; i < axes->values.size(); ++i) {
      if (!axes->values[i]) continue;
      const int64_t given = *axes->values[i], a = given < 0 ? given + x.rank() : given;
      require(c, a >= 0 && a < x.rank(), "'axis'[", i, "] = ", given, " is out of valid range [0, ",
              x.rank() - 1);
      require(c, !seen[static_cast<size_t>(a)], "axis ", a, " specified more than once.");
      seen[static_cast<size_t>(a)] = true;
    }
  }
  c.set_output(0, x);
}

void fold_reverse_v2(FoldContext& c) {
  const auto x = fold_input(c, 0);
  const auto axes = fold_known(c, 1);
  if (!x || !axes) return;
  const Dims dims = x->dims();
  std::vector<bool> turn(dims.size());
  for (int64_t a : *axes) {
    const int64_t at = a < 0 ? a + static_cast<int64_t>(dims.size()) : a;
    if (at < 0 || at >= static_cast<int64_t>(dims.size())) return;
    turn[static_cast<size_t>(at)] = true;
  }
  if (auto out = gather_ints(*x, dims, [&](const Dims& index, Dims& at) {
        for (size_t i = 0; i < index.size(); ++i) at[i] = turn[i] ? dims[i] - 1 - index[i] : index[i];
      }))
    c.set_output(0, std::move(*out));
}

Gradients same_op_gradient(Grad& g) { return {g.op(g.node().op(), {g.dy(), g.x(1)}), {}}; }

void add_slices(OpRegistry& r) {
  r.add({.name = "Slice",
         .inputs = {"input: T", "begin: Index", "size: Index"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Index: {int32, int64}"},
         .doc = "The block of `size` elements from `begin`; a size of -1 is all that remain.",
         .infer = slice_shape,
         .grad = slice_gradient,
         .fold = fold_slice});
  r.add({.name = "StridedSlice",
         .inputs = {"input: T", "begin: Index", "end: Index", "strides: Index"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0",
                   "ellipsis_mask: int = 0", "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"},
         .doc = "NumPy's x[begin:end:stride, …]; the masks say which positions are open, an ellipsis, a new "
                "axis or a plain index.",
         .infer = strided_slice_shape,
         .grad = strided_slice_gradient,
         .fold = fold_strided_slice});
  r.add({.name = "StridedSliceGrad",
         .inputs = {"shape: Index", "begin: Index", "end: Index", "strides: Index", "dy: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0",
                   "ellipsis_mask: int = 0", "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"},
         .doc = "Zeros of `shape` with dy at the positions that StridedSlice reads.",
         .infer = strided_slice_grad_shape,
         .grad = strided_slice_grad_gradient});
}

void add_padding(OpRegistry& r) {
  r.add({.name = "Pad",
         .inputs = {"input: T", "paddings: Tpaddings"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tpaddings: {int32, int64} = int32"},
         .doc = "Zeros before and after each dimension, paddings[d] = (before, after).",
         .infer = [](InferContext& c) { pad_shape(c, 1); },
         .grad = pad_gradient});
  r.add({.name = "PadV2",
         .inputs = {"input: T", "paddings: Tpaddings", "constant_values: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tpaddings: {int32, int64} = int32"},
         .doc = "Pad with a value; the value gets no gradient.",
         .infer = [](InferContext& c) { pad_shape(c, 1); },
         .grad = pad_gradient});
  r.add({.name = "MirrorPad",
         .inputs = {"input: T", "paddings: Tpaddings"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tpaddings: {int32, int64} = int32", "mode: {'REFLECT', 'SYMMETRIC'}"},
         .doc = "Pads with the mirrored input, without (REFLECT) or with (SYMMETRIC) its border.",
         .infer = [](InferContext& c) { pad_shape(c, 1); },
         .grad = [](Grad& g) { return mirror_pad_gradient(g, "MirrorPadGrad"); }});
  r.add({.name = "MirrorPadGrad",
         .inputs = {"input: T", "paddings: Tpaddings"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tpaddings: {int32, int64} = int32", "mode: {'REFLECT', 'SYMMETRIC'}"},
         .doc = "Adds the padded parts back onto what they mirror.",
         .infer = [](InferContext& c) { pad_shape(c, -1); },
         .grad = [](Grad& g) { return mirror_pad_gradient(g, "MirrorPad"); }});
}

void add_repeats(OpRegistry& r) {
  const char* types =
      "T: {uint8, int8, uint16, int16, int32, int64, bool, bfloat16, half, float, double, complex64, "
      "complex128, string}";
  r.add({.name = "Tile",
         .inputs = {"input: T", "multiples: Tmultiples"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tmultiples: {int32, int64} = int32"},
         .doc = "Repeats the input multiples[d] times along each dimension.",
         .infer = tile_shape,
         .grad = tile_gradient,
         .fold = fold_tile});
  r.add({.name = "Reverse",
         .inputs = {"tensor: T", "dims: bool"},
         .outputs = {"output: T"},
         .attrs = {types},
         .doc = "Turns round the dimensions marked true.",
         .infer = reverse_shape,
         .grad = same_op_gradient});
  r.add({.name = "ReverseV2",
         .inputs = {"tensor: T", "axis: Tidx"},
         .outputs = {"output: T"},
         .attrs = {"Tidx: {int32, int64} = int32", types},
         .doc = "Turns round the named dimensions.",
         .infer = reverse_v2_shape,
         .grad = same_op_gradient,
         .fold = fold_reverse_v2});
}

}  // namespace

void register_array_slice(OpRegistry& r) {
  add_slices(r);
  add_padding(r);
  add_repeats(r);
}

}  // namespace sluice::graph::ops
