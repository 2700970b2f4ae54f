// Pooling. Windows and strides are four numbers in the order of the data format.

#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/spatial.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

constexpr const char* kKsize = "ksize: list(int) >= 4";
constexpr const char* kPoolStrides = "strides: list(int) >= 4";

Shape pooled(InferContext& c, const Shape& input, std::string_view op) {
  const Layout l = layout_of(c.node());
  const auto ksize = four_ints(c, "ksize", op, "ksize");
  const auto strides = four_ints(c, "strides", op, "stride");
  const Padding p = padding_of(c, l);
  const auto size = [&](int axis, int64_t before, int64_t after) {
    const auto i = static_cast<size_t>(axis);
    return window_size(c, input.dim(axis), ksize[i], strides[i], 1, p.kind, before, after);
  };
  // Pooling over depth shrinks the channels; padding there is never explicit.
  const auto channel = static_cast<size_t>(l.c);
  const int64_t depth = ksize[channel] == 1 && strides[channel] == 1
                            ? input.dim(l.c)
                            : window_size(c, input.dim(l.c), ksize[channel], strides[channel], 1,
                                          p.kind == "EXPLICIT" ? "VALID" : p.kind);
  const int64_t h = size(l.h, p.before_h, p.after_h);
  const int64_t w = size(l.w, p.before_w, p.after_w);
  return image_shape(l, input.dim(l.n), h, w, depth);
}

void max_pool_shape(InferContext& c) { c.set_output(0, pooled(c, c.with_rank(0, 4), "MaxPool")); }
void avg_pool_shape(InferContext& c) { c.set_output(0, pooled(c, c.with_rank(0, 4), "AvgPool")); }
void like_input_image(InferContext& c) { c.set_output(0, c.with_rank(0, 4)); }

void max_pool_grad_grad_shape(InferContext& c) {
  c.set_output(0, pooled(c, c.with_rank(0, 4), "MaxPool"));
  c.merge(c.input(0), c.input(2));
}

void avg_pool_grad_shape(InferContext& c) {
  c.with_rank(1, 4);
  const Shape sizes = c.shape_value(0);
  if (sizes.known_rank() && sizes.rank() != 4) c.fail(cat("Shape must be rank 4 but is rank ", sizes.rank()));
  c.set_output(0, sizes.known_rank() ? sizes : Shape::of_rank(4));
}

AttrMap pool_attrs(Grad& g) { return copy_attrs(g, {"ksize", "strides", "padding", "data_format"}); }

Gradients max_pool_grad(Grad& g) {
  return {g.op("MaxPoolGrad", {g.x(), g.y(), g.dy()},
               copy_attrs(g, {"ksize", "strides", "padding", "explicit_paddings", "data_format"}))};
}

// Both gradient ops are linear in their last input and flat in the others.
GradFn max_pool_second_order(const char* op) {
  return [op](Grad& g) {
    const Output by_input = g.zeros_like(g.x(0)), by_output = g.zeros_like(g.x(1));
    return Gradients{by_input, by_output, g.op(op, {g.x(0), g.x(1), g.dy()}, pool_attrs(g))};
  };
}

}  // namespace

void register_nn_pool(OpRegistry& r) {
  r.add({.name = "MaxPool",
         .inputs = {"input: T"},
         .outputs = {"output: T"},
         .attrs =
             {"T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float",
              kKsize, kPoolStrides, kPaddingExplicit, kExplicitPaddings,
              "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"},
         .doc = "Largest element of each window; the first of equals gets the gradient.",
         .infer = max_pool_shape,
         .grad = max_pool_grad,
         .later_attrs = {kExplicitPaddings}});
  r.add({.name = "MaxPoolGrad",
         .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
         .outputs = {"output: T"},
         .attrs = {kKsize, kPoolStrides, kPaddingExplicit, kExplicitPaddings, kDataFormat,
                   "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
                   "uint64} = float"},
         .doc = "MaxPool's gradient: each window's goes to its first largest element.",
         .infer = like_input_image,
         .grad = max_pool_second_order("MaxPoolGradGrad"),
         .later_attrs = {kExplicitPaddings}});
  r.add({.name = "MaxPoolGradGrad",
         .inputs = {"orig_input: T", "orig_output: T", "grad: T"},
         .outputs = {"output: T"},
         .attrs = {kKsize, kPoolStrides, kPadding, kDataFormat, kRealTypes},
         .doc = "MaxPoolGrad's gradient by grad: the element of grad where each window was largest.",
         .infer = max_pool_grad_grad_shape,
         .grad = max_pool_second_order("MaxPoolGrad")});
  r.add({.name = "AvgPool",
         .inputs = {"value: T"},
         .outputs = {"output: T"},
         .attrs = {kKsize, kPoolStrides, kPadding, kDataFormat, kFloatTypes},
         .doc = "Mean of each window's cells that lie inside the image.",
         .infer = avg_pool_shape,
         .grad = [](Grad& g) {
           return Gradients{g.op("AvgPoolGrad", {g.shape_of(g.x()), g.dy()}, pool_attrs(g))};
         }});
  r.add({.name = "AvgPoolGrad",
         .inputs = {"orig_input_shape: int32", "grad: T"},
         .outputs = {"output: T"},
         .attrs = {kKsize, kPoolStrides, kPadding, kDataFormat, kFloatTypes},
         .doc = "AvgPool's gradient: each window's spread evenly over its cells inside the image.",
         .infer = avg_pool_grad_shape,
         .grad = [](Grad& g) {
           return Gradients{GradValue(), g.op("AvgPool", {g.dy()}, pool_attrs(g))};
         }});
}

}  // namespace sluice::graph::ops
