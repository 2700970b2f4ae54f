// Reductions, positions of extrema, running sums and segments.

#include <algorithm>
#include <numeric>

#include "graph/fold.h"
#include "graph/infer.h"
#include "graph/ops/fold_rules.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

constexpr const char* kAxisType = "Tidx: {int32, int64} = int32";
constexpr const char* kKeepDims = "keep_dims: bool = false";

// The axes as positions in [0, rank), or nothing when they or the rank are not known.
std::optional<std::vector<int32_t>> known_axes(Grad& g) {
  const auto axes = partial_value(g.x(1));
  if (!g.x().shape().known_rank() || !axes || !axes->fully_known()) return std::nullopt;
  std::vector<int32_t> out;
  for (int64_t axis : axes->with_unknowns())
    out.push_back(static_cast<int32_t>(axis < 0 ? axis + g.x().shape().rank() : axis));
  return out;
}

std::vector<int32_t> to_i32(const Dims& dims) { return {dims.begin(), dims.end()}; }

// dy spread over the reduced axes. Static shapes need Reshape and Tile only.
Output spread(Grad& g) {
  const Shape& shape = g.x().shape();
  const Output dy = g.dy();
  const auto axes = known_axes(g);
  if (axes && axes->size() == static_cast<size_t>(shape.rank())) {
    std::vector<int32_t> all(axes->size());
    std::iota(all.begin(), all.end(), 0);
    if (*axes == all) {
      const Output flat = reshape_to(g, dy, std::vector<int32_t>(all.size(), 1));
      const Output full = shape.fully_known() ? g.constant_i32(to_i32(shape.dims())) : g.op("Shape", {g.x()});
      return g.op("Tile", {flat, full});
    }
  }
  if (axes && shape.fully_known()) {
    std::vector<int32_t> kept = to_i32(shape.dims()), tiles(kept.size(), 1);
    for (int32_t axis : *axes) {
      const auto a = static_cast<size_t>(axis);
      tiles[a] = static_cast<int32_t>(shape.dim(axis));
      kept[a] = 1;
    }
    const Output narrow = reshape_to(g, dy, kept);
    NameScope scope(g.graph(), "Tile");
    const Output multiples = g.constant_i32(tiles, "multiples");
    return g.op("Tile", {narrow, multiples}, {}, scope.scope());
  }
  const Output input_shape = g.op("Shape", {g.x()});
  Output narrow = dy;
  if (!g.attr<bool>("keep_dims")) {
    ColocateWith near(g.graph(), input_shape.node, true);
    const ShapeValue kept = kept_dims_shape(g, input_shape, g.x(1));
    narrow = reshape_to(g, dy, kept);
  }
  return g.op("BroadcastTo", {narrow, input_shape});
}

Gradients sum_grad(Grad& g) { return {spread(g), GradValue()}; }

// Sum's gradient over the number of elements that each output averages.
Gradients mean_grad(Grad& g) {
  const Output sum = spread(g);
  const auto inputs = g.x().shape().elements(), outputs = g.y().shape().elements();
  Output factor;
  if (inputs && outputs) {
    factor = g.scalar_like(sum, static_cast<double>(*inputs / std::max<int64_t>(*outputs, 1)));
  } else {
    const Output input_shape = g.op("Shape", {g.x()});
    const Output rank =
        g.x().shape().known_rank() ? g.scalar_i32(g.x().shape().rank(), "Size") : g.op("Size", {input_shape});
    const Output axes = cast(g, g.x(1), DType::kInt32);
    const Output wrapped = g.op("FloorMod", {add(g, axes, rank), rank}, {}, "mod");
    const Output lengths = gather0(g, input_shape, wrapped);
    const Output zero =
        g.constant_i32(lengths.shape().rank() == 0 ? std::vector<int32_t>{} : std::vector<int32_t>{0});
    factor = cast(g, g.op("Prod", {lengths, zero}), sum.dtype());
  }
  return {truediv(g, sum, factor), GradValue()};
}

// Equal extrema share the gradient.
Gradients extremum_grad(Grad& g) {
  const Output input_shape = g.shape_of(g.x());
  Output y = g.y(), dy = g.dy();
  ShapeValue kept;
  if (g.attr<bool>("keep_dims")) {
    kept.value = g.shape_of(y);
  } else {
    kept = kept_dims_shape(g, input_shape, g.x(1));
    y = reshape_to(g, y, kept);
    dy = reshape_to(g, dy, kept);
  }
  const Output winners = cast(g, g.op("Equal", {y, g.x()}), dy.dtype());
  const Output count = reshape_to(g, reduce_sum(g, winners, g.x(1), false), kept);
  return {mul(g, truediv(g, winners, count), dy), GradValue()};
}

struct ReducedFirst {
  Output perm, inverse, reduced_count, other_count;
};

// A transpose that brings the reduced axes to the front, and the sizes of both groups.
ReducedFirst reduced_first(Grad& g, Output input_shape) {
  const Shape& shape = g.x().shape();
  if (const auto axes = known_axes(g)) {
    std::vector<int32_t> perm = *axes;
    for (int32_t i = 0; i < shape.rank(); ++i)
      if (std::find(axes->begin(), axes->end(), i) == axes->end()) perm.push_back(i);
    std::vector<int32_t> inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int32_t>(i);
    const std::vector<int32_t> other(perm.begin() + static_cast<std::ptrdiff_t>(axes->size()), perm.end());
    const auto count = [&](const std::vector<int32_t>& group) {
      const Output lengths = gather0(g, input_shape, g.constant_i32(group));
      return g.op("Prod", {lengths, g.constant_i32({0})});
    };
    const Output reduced_count = count(*axes);
    const Output other_count = count(other);
    return {g.constant_i32(perm, "perm"), g.constant_i32(inverse, "inverse"), reduced_count, other_count};
  }
  const Output flat_axes = cast(g, reshape_to(g, g.x(1), {-1}), DType::kInt32);
  const Output rank = rank_of(g, g.x());
  const Output reduced = g.op("FloorMod", {add(g, flat_axes, rank), rank}, {}, "mod");
  const Output other = g.op("ListDiff", {range_to(g, rank), reduced});
  const Output perm = concat0(g, {reduced, other});
  const auto count = [&](Output group) {
    const Output lengths = gather0(g, input_shape, group);
    return g.op("Prod", {lengths, g.constant_i32({0})});
  };
  const Output reduced_count = count(reduced);
  const Output other_count = count(other);
  return {perm, g.op("InvertPermutation", {perm}), reduced_count, other_count};
}

Output cumprod0(Grad& g, Output x, bool reverse) {
  NameScope scope(g.graph(), "Cumprod");
  const Output axis = g.scalar_i32(0, "axis");
  return g.op("Cumprod", {x, axis}, {{"exclusive", true}, {"reverse", reverse}}, scope.scope());
}

// dy times the product of all the others: running products from both sides, so that zeros do no harm.
Gradients prod_grad(Grad& g) {
  const Output input_shape = g.shape_of(g.x());
  Output dy = g.dy();
  if (!g.attr<bool>("keep_dims")) dy = reshape_to(g, dy, kept_dims_shape(g, input_shape, g.x(1)));
  dy = g.op("BroadcastTo", {dy, input_shape});
  const ReducedFirst order = reduced_first(g, input_shape);
  const Output permuted = g.op("Transpose", {g.x(), order.perm}, {}, "transpose");
  const Output permuted_shape = g.shape_of(permuted);
  const Output matrix_shape = g.op("Pack", {order.reduced_count, order.other_count}, {{"axis", 0}}, "stack");
  const Output matrix = reshape(g, permuted, matrix_shape);
  const Output left = conj(g, cumprod0(g, matrix, false));
  const Output right = conj(g, cumprod0(g, matrix, true));
  const Output others = reshape(g, mul(g, left, right), permuted_shape);
  const Output restored = g.op("Transpose", {others, order.inverse}, {}, "transpose");
  return {reshape(g, mul(g, dy, restored), input_shape), GradValue()};
}

void add_reduction(OpRegistry& r, const char* name, const char* types, const char* doc, GradFn grad,
                   FoldFn fold = nullptr) {
  r.add({.name = name,
         .inputs = {"input: T", "reduction_indices: Tidx"},
         .outputs = {"output: T"},
         .attrs = {kKeepDims, types, kAxisType},
         .doc = doc,
         .traits = kReduction,
         .infer = reduction_shape,
         .grad = std::move(grad),
         .fold = std::move(fold)});
}

void register_reductions(OpRegistry& r) {
  add_reduction(r, "Sum", kNumberTypes, "Sum over the given axes.", sum_grad, fold_reduction(int_add, 0));
  add_reduction(r, "Mean", kNumberTypes, "Mean over the given axes.", mean_grad);
  add_reduction(r, "Max", kOrderedTypes, "Largest element over the given axes; ties share the gradient.",
                extremum_grad);
  add_reduction(r, "Min", kOrderedTypes, "Smallest element over the given axes; ties share the gradient.",
                extremum_grad);
  add_reduction(r, "Prod", kNumberTypes, "Product over the given axes.", prod_grad,
                fold_reduction(int_mul, 1));
  add_reduction(r, "EuclideanNorm", kNumberTypes, "sqrt(sum(input^2)) over the given axes.", nullptr);
  const std::pair<const char*, const char*> logic[] = {{"All", "True where all elements over the axes are."},
                                                       {"Any", "True where any element over the axes is."}};
  for (const auto& [name, doc] : logic) {
    r.add({.name = name,
           .inputs = {"input: bool", "reduction_indices: Tidx"},
           .outputs = {"output: bool"},
           .attrs = {kKeepDims, kAxisType},
           .doc = doc,
           .traits = kReduction | kNotDifferentiable,
           .infer = reduction_shape});
  }
}

// The input's shape without one axis.
void arg_shape(InferContext& c) {
  c.with_rank(1, 0);
  const Shape& x = c.input(0);
  const auto dimension = c.value(1);
  if (!x.known_rank()) return c.set_output(0, Shape());
  const int rank = x.rank();
  if (rank <= 1) return c.set_output(0, Shape::scalar());
  if (!dimension) return c.set_output(0, Shape::of_rank(rank - 1));
  const int64_t axis = dimension->to_int64s()[0];
  if (axis < -rank || axis >= rank)
    c.fail(cat("Dimension (", axis, ") must be in the range [", -rank, ", ", rank, "), where ", rank,
               " is the number of dimensions in the input."));
  Dims dims = x.dims();
  dims.erase(dims.begin() + (axis < 0 ? axis + rank : axis));
  c.set_output(0, Shape(std::move(dims)));
}

void register_positions(OpRegistry& r) {
  constexpr const char* kTypes =
      "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
      "quint8, qint32, qint16, quint16, bool, complex64, complex128}";
  r.add({.name = "ArgMax",
         .inputs = {"input: T", "dimension: Tidx"},
         .outputs = {"output: output_type"},
         .attrs = {kTypes, "Tidx: {int16, int32, int64} = int32",
                   "output_type: {int16, uint16, int32, int64} = int64"},
         .doc = "Index of the largest element along an axis; the first of equals.",
         .infer = arg_shape,
         .grad = no_gradient});
  r.add({.name = "ArgMin",
         .inputs = {"input: T", "dimension: Tidx"},
         .outputs = {"output: output_type"},
         .attrs = {kTypes, kAxisType, "output_type: {int32, int64} = int64"},
         .doc = "Index of the smallest element along an axis; the first of equals.",
         .infer = arg_shape,
         .grad = no_gradient});
}

// The same scan the other way round.
Output reverse_cumsum(Grad& g, Output x) {
  return g.op("Cumsum", {x, g.x(1)},
              {{"exclusive", g.attr<bool>("exclusive")}, {"reverse", !g.attr<bool>("reverse")}});
}

// TensorFlow divides the sum of the products that hold x by x. That is right behind no zero; past the first
// one every product vanishes and so does the gradient. At the first zero itself the product of the others is
// what a scan gives that counts it as 1.
Output cumprod_gradient(Grad& g) {
  const AttrMap attrs{{"exclusive", g.attr<bool>("exclusive")}, {"reverse", g.attr<bool>("reverse")}};
  const auto sum_of_products = [&](Output x) {
    return reverse_cumsum(g, mul(g, g.op("Cumprod", {x, g.x(1)}, attrs), g.dy()));
  };
  const Output x = g.x(0);
  const Output divided = g.op("DivNoNan", {sum_of_products(x), x}, {}, "div_no_nan");
  const Output zero = g.op("Equal", {x, g.scalar_like(x, 0.0)});
  const Output zeros_so_far = g.op("Cumsum", {cast(g, zero, DType::kInt32), g.x(1)},
                                   {{"exclusive", false}, {"reverse", g.attr<bool>("reverse")}});
  const Output first_zero =
      g.op("LogicalAnd", {zero, g.op("Equal", {zeros_so_far, g.scalar_like(zeros_so_far, 1.0)})});
  const Output others = sum_of_products(g.op("Select", {first_zero, ones_like(g, x), x}));
  return g.op("Select", {first_zero, others, divided});
}

void scan_shape(InferContext& c) {
  const Shape& x = c.input(0);
  const auto axis = c.value(1);
  // TensorFlow finds a bad axis when it runs; the same words come earlier here.
  if (axis && x.known_rank() && axis->elements() == 1) {
    const int64_t a = axis->to_int64s()[0], rank = x.rank();
    if (rank > 0 && (a < -rank || a >= rank))
      c.fail(cat("Expected scan axis in the range [", -rank, ", ", rank, "), but got ", a));
  }
  c.set_output(0, x);
}

void register_scans(OpRegistry& r) {
  const auto add_scan = [&](const char* name, const char* doc, GradFn grad) {
    r.add({.name = name,
           .inputs = {"x: T", "axis: Tidx"},
           .outputs = {"out: T"},
           .attrs = {"exclusive: bool = false", "reverse: bool = false", kNumberTypes, kAxisType},
           .doc = doc,
           .infer = scan_shape,
           .grad = std::move(grad)});
  };
  add_scan("Cumsum", "Running sum along an axis.", [](Grad& g) {
    return Gradients{reverse_cumsum(g, g.dy()), GradValue()};
  });
  add_scan("Cumprod", "Running product along an axis.", [](Grad& g) {
    return Gradients{cumprod_gradient(g), GradValue()};
  });
}

}  // namespace

void register_math_reduce(OpRegistry& r) {
  register_reductions(r);
  register_positions(r);
  register_scans(r);
}

}  // namespace sluice::graph::ops
