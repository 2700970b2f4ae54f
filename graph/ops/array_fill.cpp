// Tensors made from a rule: Fill, Range, zeros and ones, one-hot rows.

#include <cmath>

#include "graph/ops/grads.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

void fill_shape(InferContext& c) {
  c.with_rank(0, 1);
  require_scalar(c, 1);
  if (const auto dims = ints(c, 0))
    for (const auto& d : dims->values) require(c, !d || *d >= 0, "Fill dimensions must be >= 0");
  c.set_output(0, c.shape_value(0));
}

std::optional<PartialInts> filled(const Dims& dims, std::optional<int64_t> value) {
  for (int64_t d : dims)
    if (d < 0) return std::nullopt;
  const int64_t n = num_elements(dims);
  if (n > kMaxFoldElements) return std::nullopt;
  return make_ints(dims, std::vector<std::optional<int64_t>>(static_cast<size_t>(n), value));
}

void fold_fill(FoldContext& c) {
  const auto dims = fold_known(c, 0);
  if (!dims || !folds_to_ints(c)) return;
  if (auto out = filled(*dims, fold_scalar(c, 1))) c.set_output(0, std::move(*out));
}

template <int kValue>
void fold_like(FoldContext& c) {
  if (!folds_to_ints(c) || !c.input_shape(0).fully_known()) return;
  if (auto out = filled(c.input_shape(0).dims(), kValue)) c.set_output(0, std::move(*out));
}

// sum(dy) over all axes, as tf.reduce_sum(dy) builds it.
Gradients fill_gradient(Grad& g) {
  const Output dy = g.dy();
  const Shape& s = dy.shape();
  Output axes;
  if (s.known_rank()) {
    std::vector<int32_t> all(static_cast<size_t>(s.rank()));
    for (int i = 0; i < s.rank(); ++i) all[static_cast<size_t>(i)] = i;
    axes = g.constant_i32(std::move(all));
  } else {
    axes = range_by(g, g.op("Rank", {dy}), 1);
  }
  return {{}, g.op("Sum", {dy, axes})};
}

template <class T>
int64_t range_length(InferContext& c, T start, T limit, T delta) {
  require(c, delta != 0, "Requires delta != 0");
  if (delta > 0)
    require(c, start <= limit, "Requires start <= limit when delta > 0: ", start, "/", limit);
  else
    require(c, start >= limit, "Requires start >= limit when delta < 0: ", start, "/", limit);
  if constexpr (std::is_integral_v<T>) {
    const T span = limit > start ? limit - start : start - limit, step = delta > 0 ? delta : -delta;
    return (span + step - 1) / step;
  } else {
    return static_cast<int64_t>(std::ceil(std::abs((limit - start) / delta)));
  }
}

void range_shape(InferContext& c) {
  static const char* const kNames[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i)
    require(c, !c.input(i).known_rank() || c.input(i).rank() == 0, "Shape must be rank 0 but is rank ",
            c.input(i).rank(), "\n\t for '", kNames[i], "'");
  c.set_output(0, Shape::of_rank(1));
  if (is_integer(c.attr<DType>("Tidx"))) {
    const auto start = scalar_int(c, 0), limit = scalar_int(c, 1), delta = scalar_int(c, 2);
    if (start && limit && delta) c.set_output(0, Shape{range_length<int64_t>(c, *start, *limit, *delta)});
    return;
  }
  const auto start = c.value(0), limit = c.value(1), delta = c.value(2);
  if (start && limit && delta)
    c.set_output(0, Shape{range_length<double>(c, start->to_doubles()[0], limit->to_doubles()[0],
                                               delta->to_doubles()[0])});
}

void fold_range(FoldContext& c) {
  const auto start = fold_scalar(c, 0), limit = fold_scalar(c, 1), delta = fold_scalar(c, 2);
  if (!start || !limit || !delta || *delta == 0) return;
  std::vector<int64_t> values;
  for (int64_t x = *start; *delta > 0 ? x < *limit : x > *limit; x += *delta) {
    values.push_back(x);
    if (static_cast<int64_t>(values.size()) > kMaxFoldElements) return;
  }
  c.set_output(0, known_ints(values));
}

void linspace_shape(InferContext& c) {
  static const char* const kNames[] = {"start", "stop", "num"};
  for (int i = 0; i < 3; ++i)
    require(c, !c.input(i).known_rank() || c.input(i).rank() == 0, "Shape must be rank 0 but is rank ",
            c.input(i).rank(), "\n\t for '", kNames[i], "'");
  const auto num = scalar_int(c, 2);
  require(c, !num || *num > 0, "Requires num > 0: ", num.value_or(0));
  c.set_output(0, num ? Shape{*num} : Shape::of_rank(1));
}

void one_hot_shape(InferContext& c) {
  const int64_t axis = c.attr<int64_t>("axis");
  require(c, axis >= -1, "axis must be >= -1");
  require(c, !c.input(1).known_rank() || c.input(1).rank() == 0, "Input must be scalar but has rank ",
          c.input(1).rank());
  require_scalar(c, 2);
  require_scalar(c, 3);
  const auto depth = scalar_int(c, 1);
  require(c, !depth || *depth >= 0, "Dimension size, given by scalar input 1, must be non-negative but is ",
          depth.value_or(0));
  const Shape& indices = c.input(0);
  if (!indices.known_rank()) return c.set_output(0, Shape());
  require(c, axis <= indices.rank(), "Expected axis to be -1 or between [0, ", indices.rank() + 1,
          ").  But received: ", axis);
  Dims out = indices.dims();
  out.insert(axis < 0 ? out.end() : out.begin() + axis, depth.value_or(kUnknownDim));
  c.set_output(0, Shape(std::move(out)));
}

}  // namespace

void register_array_fill(OpRegistry& r) {
  r.add({.name = "Fill",
         .inputs = {"dims: index_type", "value: T"},
         .outputs = {"output: T"},
         .attrs = {"T: type", "index_type: {int32, int64} = int32"},
         .doc = "A tensor full of one value.",
         .infer = fill_shape,
         .grad = fill_gradient,
         .fold = fold_fill});
  r.add({.name = "ZerosLike",
         .inputs = {"x: T"},
         .outputs = {"y: T"},
         .attrs = {"T: type"},
         .doc = "Zeros of x's shape and type.",
         .traits = kElementwise | kNotDifferentiable,
         .infer = same_shape,
         .fold = fold_like<0>});
  r.add({.name = "OnesLike",
         .inputs = {"x: T"},
         .outputs = {"y: T"},
         .attrs = {"T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, int64, complex64, "
                   "complex128, bool}"},
         .doc = "Ones of x's shape and type.",
         .traits = kElementwise | kNotDifferentiable,
         .infer = same_shape,
         .fold = fold_like<1>});
  r.add({.name = "Range",
         .inputs = {"start: Tidx", "limit: Tidx", "delta: Tidx"},
         .outputs = {"output: Tidx"},
         .attrs = {"Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint32} = int32"},
         .doc = "start, start + delta, … below limit (above it when delta < 0).",
         .traits = kNotDifferentiable,
         .infer = range_shape,
         .fold = fold_range});
  r.add({.name = "LinSpace",
         .inputs = {"start: T", "stop: T", "num: Tidx"},
         .outputs = {"output: T"},
         .attrs = {"T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = int32"},
         .doc = "num values evenly spaced from start to stop, both included.",
         .traits = kNotDifferentiable,
         .infer = linspace_shape});
  r.add({.name = "OneHot",
         .inputs = {"indices: TI", "depth: int32", "on_value: T", "off_value: T"},
         .outputs = {"output: T"},
         .attrs = {"axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = int64"},
         .doc = "on_value where the position along the new axis is the index, off_value elsewhere.",
         .traits = kNotDifferentiable,
         .infer = one_hot_shape});
}

}  // namespace sluice::graph::ops
