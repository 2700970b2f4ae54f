#include <algorithm>

#include "graph/infer.h"
#include "graph/support/check.h"

namespace sluice::graph {

void same_shape(InferContext& c) { c.set_output(0, c.input(0)); }

void merge_all_inputs(InferContext& c) {
  Shape s = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) s = c.merge(s, c.input(i));
  c.set_output(0, s);
}

Shape broadcast(InferContext& c, const Shape& a, const Shape& b) {
  if (auto s = broadcast_shapes(a, b)) return std::move(*s);
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 1; i <= rank; ++i) {  // name the first clash from the right, as the reader compares
    const int64_t x = i <= a.rank() ? a.dim(-i) : 1, y = i <= b.rank() ? b.dim(-i) : 1;
    if (x >= 0 && y >= 0 && x != y && x != 1 && y != 1)
      c.fail(cat("Dimensions must be equal, but are ", x, " and ", y));
  }
  c.fail("Incompatible shapes");
}

void broadcast_binary(InferContext& c) { c.set_output(0, broadcast(c, c.input(0), c.input(1))); }

void scalar_output(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape::scalar());
}

void no_outputs(InferContext&) {}

void unknown_outputs(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
}

void reduction_shape(InferContext& c) {
  const Shape& x = c.input(0);
  const Shape& axes_shape = c.input(1);
  if (axes_shape.known_rank() && axes_shape.rank() > 1)
    c.fail("Shape must be at most rank 1 for the reduction axes");
  const bool keep =
      c.node().find_attr("keep_dims") ? c.attr<bool>("keep_dims") : c.node().attr_or<bool>("keepdims", false);
  const auto axes = c.value(1);
  if (!x.known_rank()) return c.set_output(0, Shape());
  if (!axes) return c.set_output(0, keep ? Shape::of_rank(x.rank()) : Shape());
  std::vector<bool> reduced(static_cast<size_t>(x.rank()));
  for (int64_t a : axes->to_int64s()) reduced[static_cast<size_t>(c.axis(a, x.rank()))] = true;
  Dims out;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)])
      out.push_back(x.dim(i));
    else if (keep)
      out.push_back(1);
  }
  c.set_output(0, Shape(std::move(out)));
}

void matrix_multiply(InferContext& c) {
  const Shape a = c.with_rank(0, 2), b = c.with_rank(1, 2);
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  c.merge_dim(a.dim(ta ? 0 : 1), b.dim(tb ? 1 : 0));
  c.set_output(0, Shape{a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1)});
}

Window window(int64_t in, int64_t k, int64_t stride, int64_t dilation, std::string_view padding,
              int64_t before, int64_t after) {
  SLUICE_REQUIRE(stride > 0, Code::kInvalidArgument, "Stride must be > 0, but got ", stride);
  SLUICE_REQUIRE(dilation > 0, Code::kInvalidArgument, "Dilation rate must be > 0, but got ", dilation);
  if (in < 0 || k < 0) return {kUnknownDim, before, after};
  const int64_t eff = (k - 1) * dilation + 1;
  Window w;
  if (padding == "SAME") {
    w.out = (in + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (w.out - 1) * stride + eff - in);
    w.before = total / 2;
    w.after = total - w.before;  // the odd cell goes after
  } else if (padding == "VALID") {
    w.out = (in - eff + stride) / stride;
  } else {
    SLUICE_REQUIRE(padding == "EXPLICIT", Code::kInvalidArgument, "Unknown padding '", padding, "'");
    w.before = before;
    w.after = after;
    w.out = (in + before + after - eff + stride) / stride;
  }
  const int64_t span = padding == "EXPLICIT" ? in + before + after : in;
  SLUICE_REQUIRE(w.out >= 0 && (padding == "SAME" || span - eff + stride >= 0), Code::kInvalidArgument,
                 "Computed output size would be negative: ", w.out, " [input_size: ", in,
                 ", effective_filter_size: ", eff, ", stride: ", stride, "]");
  return w;
}

namespace {

int64_t clamp_index(int64_t i, int64_t lo, int64_t hi) { return i < lo ? lo : (i > hi ? hi : i); }

}  // namespace

StridedSliceSpec resolve_strided_slice(const Shape& input, const PartialInts& begin, const PartialInts& end,
                                       const PartialInts& strides, int64_t begin_mask, int64_t end_mask,
                                       int64_t ellipsis_mask, int64_t new_axis_mask,
                                       int64_t shrink_axis_mask) {
  const int spec = static_cast<int>(strides.values.size());
  SLUICE_REQUIRE(
      spec < 32 && begin.values.size() == strides.values.size() && end.values.size() == strides.values.size(),
      Code::kInvalidArgument, "Expected begin, end, and strides to be 1D equal size tensors");
  SLUICE_REQUIRE((ellipsis_mask & (ellipsis_mask - 1)) == 0, Code::kInvalidArgument,
                 "Multiple ellipses in slice spec not allowed");
  SLUICE_CHECK(input.known_rank(), "resolve_strided_slice needs a rank");
  auto bit = [](int64_t mask, int i) { return ((mask >> i) & 1) != 0; };
  int consumed = 0;  // input dims that the spec's own entries use
  for (int i = 0; i < spec; ++i)
    if (!bit(ellipsis_mask, i) && (!bit(new_axis_mask, i))) ++consumed;
  if (consumed > input.rank())
    throw_error(Code::kInvalidArgument, cat("Index out of range using input dim ", input.rank(),
                                            "; input has only ", input.rank(), " dims"));
  StridedSliceSpec r;
  auto whole = [&](int64_t dim) {
    r.begin.push_back(0);
    r.end.push_back(dim);
    r.stride.push_back(1);
    r.processing_dims.push_back(dim);
    r.final_dims.push_back(dim);
  };
  int in = 0;
  bool ellipsis_seen = false;
  for (int i = 0; i < spec; ++i) {
    if (bit(ellipsis_mask, i)) {
      for (int k = input.rank() - consumed; k > 0; --k) whole(input.dim(in++));
      ellipsis_seen = true;
      continue;
    }
    if (bit(new_axis_mask, i)) {
      r.final_dims.push_back(1);
      continue;
    }
    const auto u = static_cast<size_t>(i);
    SLUICE_REQUIRE(strides.values[u].has_value(), Code::kInvalidArgument, "strides must be known");
    const int64_t s = *strides.values[u], dim = input.dim(in++);
    SLUICE_REQUIRE(s != 0, Code::kInvalidArgument, "strides[", i, "] must be non-zero");
    const bool shrink = bit(shrink_axis_mask, i);
    SLUICE_REQUIRE(!shrink || s > 0, Code::kInvalidArgument, "only stride 1 allowed on non-range indexing.");
    const int64_t lo = s > 0 ? 0 : -1, hi = s > 0 ? dim : dim - 1;
    if (shrink) {
      int64_t x = begin.values[u].value_or(kUnknownDim);
      if (begin.values[u] && dim >= 0) {
        if (x < 0) x += dim;
        SLUICE_REQUIRE(x >= 0 && x < dim, Code::kInvalidArgument, "slice index ", *begin.values[u],
                       " of dimension ", in - 1, " out of bounds.");
      }
      r.begin.push_back(x);
      r.end.push_back(x + 1);
      r.stride.push_back(1);
      r.processing_dims.push_back(1);
      continue;
    }
    const bool known =
        dim >= 0 && (bit(begin_mask, i) || begin.values[u]) && (bit(end_mask, i) || end.values[u]);
    int64_t b = 0, e = 0, len = kUnknownDim;
    if (known) {
      auto resolve = [&](const std::optional<int64_t>& v, bool masked, bool at_begin) {
        if (masked) return (s > 0) == at_begin ? lo : hi;
        const int64_t x = *v < 0 ? *v + dim : *v;
        return clamp_index(x, lo, hi);
      };
      b = resolve(begin.values[u], bit(begin_mask, i), true);
      e = resolve(end.values[u], bit(end_mask, i), false);
      const int64_t span = e - b;
      len = span == 0 || (span < 0) != (s < 0) ? 0 : (span + s - (s > 0 ? 1 : -1)) / s;
    }
    r.begin.push_back(b);
    r.end.push_back(e);
    r.stride.push_back(s);
    r.processing_dims.push_back(len);
    r.final_dims.push_back(len);
  }
  if (!ellipsis_seen)
    while (in < input.rank()) whole(input.dim(in++));
  return r;
}

}  // namespace sluice::graph
