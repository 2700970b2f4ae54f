// Ops about shapes: reading them, and giving a tensor another one over the same elements.

#include <algorithm>
#include <numeric>

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

Shape vector_of_rank(const Shape& s) { return s.known_rank() ? Shape{s.rank()} : Shape::of_rank(1); }

void shape_shape(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, vector_of_rank(c.input(i)));
}

void fold_shape(FoldContext& c) {
  for (int i = 0; i < c.node().num_outputs(); ++i)
    if (c.input_shape(i).known_rank()) c.set_output(i, ints_of(c.input_shape(i)));
}

void fold_size(FoldContext& c) {
  if (const auto n = c.input_shape(0).elements()) c.set_output(0, known_int(*n));
}

void fold_rank(FoldContext& c) {
  if (c.input_shape(0).known_rank()) c.set_output(0, known_int(c.input_shape(0).rank()));
}

// Product of the known dimensions and how many are not.
struct Count {
  int64_t product = 1;
  int unknown = 0, last_unknown = -1;
};
Count count(const Shape& s) {
  Count n;
  for (int i = 0; i < s.rank(); ++i) {
    if (s.known_dim(i))
      n.product *= s.dim(i);
    else
      ++n.unknown, n.last_unknown = i;
  }
  return n;
}

void reshape_shape(InferContext& c) {
  c.with_rank(1, 1);
  const Shape& x = c.input(0);
  Shape out = c.shape_value(1);
  if (!out.known_rank() || !x.known_rank()) return c.set_output(0, out);
  const Count from = count(x), to = count(out);
  if (from.unknown == 0 && to.unknown == 0) {
    require(c, from.product == to.product, "Cannot reshape a tensor with ", from.product,
            " elements to shape ", out, " (", to.product, " elements)");
  } else if (from.unknown == 0 && to.unknown == 1 && to.product > 0) {
    out.set_dim(to.last_unknown, divide_dims(c, from.product, to.product));
  }
  c.set_output(0, out);
}

void fold_reshape(FoldContext& c) {
  const auto x = fold_input(c, 0);
  auto dims = fold_known(c, 1);
  if (!x || !dims) return;
  int64_t known = 1;
  int64_t* missing = nullptr;
  for (int64_t& d : *dims) (d < 0 ? void(missing = &d) : void(known *= d));
  const auto n = static_cast<int64_t>(x->values.size());
  if (missing) *missing = known > 0 ? n / known : 0;
  if (std::any_of(dims->begin(), dims->end(), [](int64_t d) { return d < 0; }) || num_elements(*dims) != n)
    return;
  c.set_output(0, with_dims(*x, *dims));
}

void expand_dims_shape(InferContext& c) {
  const Shape& dim_shape = c.input(1);
  require(c, !dim_shape.known_rank() || dim_shape.elements().value_or(1) == 1,
          "'dim' input must be a tensor with a single value");
  const Shape& x = c.input(0);
  if (!x.known_rank()) return c.set_output(0, Shape());
  const auto dim = scalar_int(c, 1);
  if (!dim) return c.set_output(0, Shape::of_rank(x.rank() + 1));
  require(c, *dim >= -x.rank() - 1 && *dim <= x.rank(), "dim ", *dim, " not in the interval [", -x.rank() - 1,
          ", ", x.rank(), "].");
  Dims out = x.dims();
  out.insert(out.begin() + (*dim < 0 ? *dim + x.rank() + 1 : *dim), 1);
  c.set_output(0, Shape(std::move(out)));
}

void fold_expand_dims(FoldContext& c) {
  const auto x = fold_input(c, 0);
  const auto dim = fold_scalar(c, 1);
  if (!x || !dim) return;
  Dims dims = x->dims();
  const auto rank = static_cast<int64_t>(dims.size());
  if (*dim < -rank - 1 || *dim > rank) return;
  dims.insert(dims.begin() + (*dim < 0 ? *dim + rank + 1 : *dim), 1);
  c.set_output(0, with_dims(*x, dims));
}

void squeeze_shape(InferContext& c) {
  const auto squeeze = c.attr<std::vector<int64_t>>("squeeze_dims");
  const Shape& x = c.input(0);
  if (!x.known_rank() || (squeeze.empty() && !x.fully_known())) return c.set_output(0, Shape());
  std::vector<bool> drop(static_cast<size_t>(x.rank()));
  for (size_t k = 0; k < squeeze.size(); ++k) {
    const int64_t d = squeeze[k];
    require(c, d >= -x.rank() && d < x.rank(), "squeeze_dims[", k, "] not in [", -x.rank(), ",", x.rank(),
            ").");
    const auto i = static_cast<int>(d < 0 ? d + x.rank() : d);
    require(c, !x.known_dim(i) || x.dim(i) == 1, "Can not squeeze dim[", i,
            "], expected a dimension of 1, got ", x.dim(i));
    drop[static_cast<size_t>(i)] = true;
  }
  Dims out;
  for (int i = 0; i < x.rank(); ++i)
    if (squeeze.empty() ? x.dim(i) != 1 : !drop[static_cast<size_t>(i)]) out.push_back(x.dim(i));
  c.set_output(0, Shape(std::move(out)));
}

void fold_squeeze(FoldContext& c) {
  const auto x = fold_input(c, 0);
  if (!x) return;
  const Dims from = x->dims();
  const auto rank = static_cast<int64_t>(from.size());
  const auto squeeze = c.node().attr<std::vector<int64_t>>("squeeze_dims");
  Dims to;
  for (int64_t i = 0; i < rank; ++i) {
    const bool named =
        std::any_of(squeeze.begin(), squeeze.end(), [&](int64_t d) { return (d < 0 ? d + rank : d) == i; });
    if (from[static_cast<size_t>(i)] != 1 || !(named || squeeze.empty()))
      to.push_back(from[static_cast<size_t>(i)]);
  }
  c.set_output(0, with_dims(*x, to));
}

void transpose_shape(InferContext& c) {
  const Shape perm_shape = c.with_rank(1, 1);
  const auto perm = ints(c, 1);
  Shape x = c.input(0);
  int64_t rank = perm ? static_cast<int64_t>(perm->values.size()) : perm_shape.dim(0);
  if (x.known_rank()) {
    require_dim(c, rank, x.rank());
    rank = x.rank();
  }
  if (rank < 0) return c.set_output(0, Shape());
  Shape out = Shape::of_rank(static_cast<int>(rank));
  if (!perm || !perm->fully_known() || !x.known_rank()) return c.set_output(0, out);
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int64_t p = *perm->values[static_cast<size_t>(i)];
    require(c, p >= -rank && p < rank, "perm dim ", p, " is out of range of input rank ", rank);
    const auto from = static_cast<int>(p < 0 ? p + rank : p);
    seen[static_cast<size_t>(from)] = true;
    out.set_dim(i, x.dim(from));
  }
  for (int64_t i = 0; i < rank; ++i)
    require(c, seen[static_cast<size_t>(i)], i, " is missing from the permutation ",
            dims_string(perm->with_unknowns()));
  c.set_output(0, out);
}

void fold_transpose(FoldContext& c) {
  const auto x = fold_input(c, 0);
  auto perm = fold_known(c, 1);
  if (!x || !perm) return;
  const Dims from = x->dims();
  if (perm->size() != from.size()) return;
  Dims to;
  for (int64_t& p : *perm) {
    if (p < 0) p += static_cast<int64_t>(from.size());
    if (p < 0 || p >= static_cast<int64_t>(from.size())) return;
    to.push_back(from[static_cast<size_t>(p)]);
  }
  if (auto out = gather_ints(*x, to, [&](const Dims& index, Dims& at) {
        for (size_t d = 0; d < index.size(); ++d) at[static_cast<size_t>((*perm)[d])] = index[d];
      }))
    c.set_output(0, std::move(*out));
}

Gradients transpose_gradient(Grad& g) {
  const Output inverse = g.op("InvertPermutation", {g.x(1)});
  const bool real = !is_complex(g.x().dtype());  // conjugating is nothing then, and TensorFlow drops it
  return {g.op(real ? "Transpose" : g.node().op(), {g.dy(), inverse}, {}, "transpose"), {}};
}

void vector_like_input(InferContext& c) { c.set_output(0, c.with_rank(0, 1)); }

void fold_invert_permutation(FoldContext& c) {
  const auto p = fold_known(c, 0);
  if (!p) return;
  std::vector<int64_t> inverse(p->size());
  for (size_t i = 0; i < p->size(); ++i) {
    const int64_t at = (*p)[i];
    if (at < 0 || at >= static_cast<int64_t>(p->size())) return;
    inverse[static_cast<size_t>(at)] = static_cast<int64_t>(i);
  }
  c.set_output(0, known_ints(inverse));
}

// Broadcasting of two shapes given as values.

// The axes that a gradient sums for one operand: those where its right-aligned dimension is 1, unless the two
// shapes are the same. Nothing while a needed dimension is unknown.
std::optional<std::vector<int64_t>> summed_axes(const PartialInts& mine, const PartialInts& other) {
  const size_t n = mine.values.size(), m = other.values.size(), rank = std::max(n, m);
  bool same = n == m, differ = n != m;
  for (size_t i = 0; i < n && n == m; ++i) {
    const auto &a = mine.values[i], &b = other.values[i];
    differ |= a && b && *a != *b;
    same &= a && b && *a == *b;
  }
  if (same) return std::vector<int64_t>{};
  if (!differ) return std::nullopt;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) {
    if (i + n < rank) {
      axes.push_back(static_cast<int64_t>(i));
      continue;
    }
    const auto& d = mine.values[i + n - rank];
    if (!d) return std::nullopt;
    if (*d == 1) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

void broadcast_gradient_args_shape(InferContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 1);
  const auto a = ints(c, 0), b = ints(c, 1);
  for (int i = 0; i < 2; ++i) {
    const auto axes = a && b ? (i ? summed_axes(*b, *a) : summed_axes(*a, *b)) : std::nullopt;
    c.set_output(i, axes ? Shape{static_cast<int64_t>(axes->size())} : Shape::of_rank(1));
  }
}

void fold_broadcast_gradient_args(FoldContext& c) {
  const auto a = fold_input(c, 0), b = fold_input(c, 1);
  if (!a || !b) return;
  if (auto axes = summed_axes(*a, *b)) c.set_output(0, known_ints(*axes));
  if (auto axes = summed_axes(*b, *a)) c.set_output(1, known_ints(*axes));
}

void broadcast_args_shape(InferContext& c) {
  const Shape a = c.with_rank(0, 1), b = c.with_rank(1, 1);
  const bool known = a.known_dim(0) && b.known_dim(0);
  c.set_output(0, known ? Shape{std::max(a.dim(0), b.dim(0))} : Shape::of_rank(1));
}

void fold_broadcast_args(FoldContext& c) {
  const auto a = fold_input(c, 0), b = fold_input(c, 1);
  if (!a || !b || a->scalar || b->scalar) return;
  if (const auto s = broadcast_shapes(Shape(a->with_unknowns()), Shape(b->with_unknowns())))
    c.set_output(0, ints_of(*s));
}

void broadcast_to_shape(InferContext& c) {
  c.with_rank(1, 1);
  const Shape& x = c.input(0);
  Shape out = c.shape_value(1);
  if (!out.known_rank() || !x.known_rank()) return c.set_output(0, out);
  require(c, x.rank() <= out.rank(), "Shape must be at most rank ", out.rank(), " but is rank ", x.rank());
  for (int i = 1; i <= x.rank(); ++i) {
    const int64_t from = x.dim(-i), to = out.dim(-i);
    if (from < 0 || from == 1) continue;
    require(c, to < 0 || from == to, "Dimensions must be equal, but are ", from, " and ", to);
    out.set_dim(-i, from);
  }
  c.set_output(0, out);
}

void fold_broadcast_to(FoldContext& c) {
  const auto x = fold_input(c, 0);
  const auto dims = fold_known(c, 1);
  if (!x || !dims || std::any_of(dims->begin(), dims->end(), [](int64_t d) { return d < 0; })) return;
  const Dims from = x->dims();
  if (from.size() > dims->size()) return;
  if (auto out = gather_ints(*x, *dims, [&](const Dims& index, Dims& at) {
        for (size_t d = 0; d < at.size(); ++d) at[d] = from[d] == 1 ? 0 : index[d + index.size() - at.size()];
      }))
    c.set_output(0, std::move(*out));
}

Gradients broadcast_to_gradient(Grad& g) {
  const DType type = g.x(1).dtype();
  const Output dy = g.dy(), in = shape_of(g, g.x(), type);
  // TensorFlow reads a constant target shape back as a constant of the gradient.
  const auto known = constant_value(g.x(1));
  const Output out = known ? g.constant(*known) : g.x(1);
  Node& axes = g.node_op("BroadcastGradientArgs", {out, in});
  const Output sum = g.op("Sum", {dy, axes.output(1)}, {{"keep_dims", true}});
  return {g.op("Reshape", {sum, in}), {}};
}

void add_reading(OpRegistry& r) {
  r.add({.name = "Shape",
         .inputs = {"input: T"},
         .outputs = {"output: out_type"},
         .attrs = {"T: type", "out_type: {int32, int64} = int32"},
         .doc = "The input's shape as a vector.",
         .traits = kNotDifferentiable,
         .infer = shape_shape,
         .fold = fold_shape});
  r.add({.name = "ShapeN",
         .inputs = {"input: N * T"},
         .outputs = {"output: N * out_type"},
         .attrs = {"N: int >= 1", "T: type", "out_type: {int32, int64} = int32"},
         .doc = "The shape of each input.",
         .traits = kNotDifferentiable,
         .infer = shape_shape,
         .fold = fold_shape});
  r.add({.name = "Size",
         .inputs = {"input: T"},
         .outputs = {"output: out_type"},
         .attrs = {"T: type", "out_type: {int32, int64} = int32"},
         .doc = "Number of elements.",
         .traits = kNotDifferentiable,
         .infer = scalar_output,
         .fold = fold_size});
  r.add({.name = "Rank",
         .inputs = {"input: T"},
         .outputs = {"output: int32"},
         .attrs = {"T: type"},
         .doc = "Number of dimensions.",
         .traits = kNotDifferentiable,
         .infer = scalar_output,
         .fold = fold_rank});
}

void add_reshaping(OpRegistry& r) {
  r.add({.name = "Reshape",
         .inputs = {"tensor: T", "shape: Tshape"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tshape: {int32, int64} = int32"},
         .doc = "The same elements under another shape, one entry of which may be -1: what remains.",
         .traits = kViewOf0,
         .infer = reshape_shape,
         .grad = reshape_gradient,
         .fold = fold_reshape});
  r.add({.name = "ExpandDims",
         .inputs = {"input: T", "dim: Tdim"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tdim: {int32, int64} = int32"},
         .doc = "Inserts a dimension of 1 before dimension `dim`.",
         .traits = kViewOf0,
         .infer = expand_dims_shape,
         .grad = reshape_gradient,
         .fold = fold_expand_dims});
  r.add({.name = "Squeeze",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "squeeze_dims: list(int) >= 0 = []"},
         .doc = "Drops dimensions of 1: those named, or all.",
         .traits = kViewOf0,
         .infer = squeeze_shape,
         .grad = reshape_gradient,
         .fold = fold_squeeze});
  for (const char* name : {"Transpose", "ConjugateTranspose"})
    r.add({.name = name,
           .inputs = {"x: T", "perm: Tperm"},
           .outputs = {"y: T"},
           .attrs = {"T: type", "Tperm: {int32, int64} = int32"},
           .doc = "Permutes dimensions: y's dimension i is x's dimension perm[i] (conjugated in "
                  "ConjugateTranspose).",
           .infer = transpose_shape,
           .grad = transpose_gradient,
           .fold = fold_transpose});
  r.add({.name = "InvertPermutation",
         .inputs = {"x: T"},
         .outputs = {"y: T"},
         .attrs = {"T: {int32, int64} = int32"},
         .doc = "y[x[i]] = i.",
         .traits = kNotDifferentiable,
         .infer = vector_like_input,
         .fold = fold_invert_permutation});
}

void add_broadcasting(OpRegistry& r) {
  r.add({.name = "BroadcastGradientArgs",
         .inputs = {"s0: T", "s1: T"},
         .outputs = {"r0: T", "r1: T"},
         .attrs = {"T: {int32, int64} = int32"},
         .doc = "For two shapes that were broadcast: the axes that each operand's gradient sums.",
         .traits = kNotDifferentiable,
         .infer = broadcast_gradient_args_shape,
         .fold = fold_broadcast_gradient_args});
  r.add({.name = "BroadcastArgs",
         .inputs = {"s0: T", "s1: T"},
         .outputs = {"r0: T"},
         .attrs = {"T: {int32, int64} = int32"},
         .doc = "The shape that two shapes broadcast to.",
         .traits = kNotDifferentiable,
         .infer = broadcast_args_shape,
         .fold = fold_broadcast_args});
  r.add({.name = "BroadcastTo",
         .inputs = {"input: T", "shape: Tidx"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "Tidx: {int32, int64} = int32"},
         .doc = "The input broadcast to a shape.",
         .infer = broadcast_to_shape,
         .grad = broadcast_to_gradient,
         .fold = fold_broadcast_to});
}

}  // namespace

void register_array_shape(OpRegistry& r) {
  add_reading(r);
  add_reshaping(r);
  add_broadcasting(r);
}

}  // namespace sluice::graph::ops
