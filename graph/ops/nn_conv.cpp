// Convolutions. Filters are HWIO; depthwise filters HWIM with output channel in * multiplier + m. A gradient
// op takes the attributes of its forward op unchanged, and the three ops of a family are closed under
// differentiation.

#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/spatial.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

struct Strides {
  std::vector<int64_t> stride, dilation;
};

Strides strides_of(InferContext& c, std::string_view op) {
  const std::string format = c.node().attr_or<std::string>("data_format", "NHWC");
  Strides s;
  s.stride = four_ints(c, "strides", op == "Conv2D" ? cat("Conv2D on data format ", format) : std::string(op),
                       "stride");
  s.dilation = c.node().find_attr("dilations") ? four_ints(c, "dilations", op, "dilation")
                                               : std::vector<int64_t>{1, 1, 1, 1};
  return s;
}

// Height and width of what a filter slides over.
struct Extent {
  int64_t h, w;
};

Extent slid(InferContext& c, const Shape& input, const Shape& filter, const Strides& s, const Layout& l,
            const Padding& p) {
  const auto at = [](const std::vector<int64_t>& v, int i) { return v[static_cast<size_t>(i)]; };
  return {window_size(c, input.dim(l.h), filter.dim(0), at(s.stride, l.h), at(s.dilation, l.h), p.kind,
                      p.before_h, p.after_h),
          window_size(c, input.dim(l.w), filter.dim(1), at(s.stride, l.w), at(s.dilation, l.w), p.kind,
                      p.before_w, p.after_w)};
}

void conv2d_shape(InferContext& c) {
  const Layout l = layout_of(c.node());
  const Strides s = strides_of(c, "Conv2D");
  const Padding p = padding_of(c, l);
  const Shape input = c.with_rank(0, 4), filter = c.with_rank(1, 4);
  const int64_t depth = input.dim(l.c), filter_depth = filter.dim(2), out_depth = filter.dim(3);
  // A shallower filter is a grouped convolution.
  if (depth >= 0 && filter_depth >= 0) {
    if (filter_depth == 0) c.fail("Depth of filter must not be 0");
    if (depth % filter_depth != 0)
      c.fail(cat("Depth of input (", depth, ") is not a multiple of input depth of filter (", filter_depth,
                 ")"));
    const int64_t groups = depth / filter_depth;
    if (out_depth >= 0 && groups > 0 && out_depth % groups != 0)
      c.fail(
          cat("Depth of output (", out_depth, ") is not a multiple of the number of groups (", groups, ")"));
  }
  const Extent out = slid(c, input, filter, s, l, p);
  c.set_output(0, image_shape(l, input.dim(l.n), out.h, out.w, out_depth));
}

void depthwise_shape(InferContext& c) {
  const Layout l = layout_of(c.node());
  const Strides s = strides_of(c, "DepthwiseConv2D");
  const Padding p = padding_of(c, l);
  const Shape input = c.with_rank(0, 4), filter = c.with_rank(1, 4);
  const int64_t depth = c.merge_dim(input.dim(l.c), filter.dim(2)), multiplier = filter.dim(3);
  const Extent out = slid(c, input, filter, s, l, p);
  const int64_t channels = depth < 0 || multiplier < 0 ? kUnknownDim : depth * multiplier;
  c.set_output(0, image_shape(l, input.dim(l.n), out.h, out.w, channels));
}

// The sizes input is the shape; two sizes are height and width alone. What is missing comes from dy and
// filter.
void conv_backprop_input_shape(InferContext& c) {
  const Layout l = layout_of(c.node());
  const Shape dy = c.with_rank(2, 4), filter = c.with_rank(1, 4);
  Shape sizes = c.shape_value(0);
  if (!sizes.known_rank()) return c.set_output(0, image_shape(l, dy.dim(l.n), -1, -1, -1));
  if (sizes.rank() == 2) sizes = image_shape(l, dy.dim(l.n), sizes.dim(0), sizes.dim(1), filter.dim(2));
  if (sizes.rank() != 4)
    c.fail(cat("Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: ",
               sizes.rank()));
  sizes.set_dim(l.n, c.merge_dim(sizes.dim(l.n), dy.dim(l.n)));
  c.set_output(0, sizes);
}

void depthwise_backprop_input_shape(InferContext& c) {
  c.with_rank(1, 4);
  c.with_rank(2, 4);
  const Shape sizes = c.shape_value(0);
  if (sizes.known_rank() && sizes.rank() != 4) c.fail(cat("Shape must be rank 4 but is rank ", sizes.rank()));
  c.set_output(0, sizes.known_rank() ? sizes : Shape::of_rank(4));
}

void backprop_filter_shape(InferContext& c) {
  c.with_rank(0, 4);
  c.with_rank(2, 4);
  const Shape sizes = c.shape_value(1);
  if (sizes.known_rank() && sizes.rank() != 4) c.fail(cat("Shape must be rank 4 but is rank ", sizes.rank()));
  c.set_output(0, sizes.known_rank() ? sizes : Shape::of_rank(4));
}

AttrMap conv_attrs(Grad& g) {
  return copy_attrs(
      g, {"strides", "padding", "explicit_paddings", "use_cudnn_on_gpu", "data_format", "dilations"});
}

struct Family {
  const char *forward, *backprop_input, *backprop_filter;
};
constexpr Family kConv2d{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
constexpr Family kDepthwise{"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                            "DepthwiseConv2dNativeBackpropFilter"};

Gradients conv2d_grad(Grad& g) {
  Node& shapes = g.node_op("ShapeN", {g.x(0), g.x(1)});
  const Output gx = g.op(kConv2d.backprop_input, {shapes.output(0), g.x(1), g.dy()}, conv_attrs(g));
  return {gx, g.op(kConv2d.backprop_filter, {g.x(0), shapes.output(1), g.dy()}, conv_attrs(g))};
}

Gradients depthwise_grad(Grad& g) {
  const Output input_shape = g.shape_of(g.x(0));
  const Output gx = g.op(kDepthwise.backprop_input, {input_shape, g.x(1), g.dy()}, conv_attrs(g));
  const Output filter_shape = g.shape_of(g.x(1));
  return {gx, g.op(kDepthwise.backprop_filter, {g.x(0), filter_shape, g.dy()}, conv_attrs(g))};
}

// inputs: sizes, filter, out_backprop
GradFn backprop_input_grad(Family f) {
  return [f](Grad& g) {
    const Output shape = g.shape_of(g.x(1));
    const Output by_filter = g.op(f.backprop_filter, {g.dy(), shape, g.x(2)}, conv_attrs(g));
    return Gradients{GradValue(), by_filter, g.op(f.forward, {g.dy(), g.x(1)}, conv_attrs(g))};
  };
}

// inputs: input, sizes, out_backprop
GradFn backprop_filter_grad(Family f) {
  return [f](Grad& g) {
    const Output shape = g.shape_of(g.x(0));
    const Output by_input = g.op(f.backprop_input, {shape, g.dy(), g.x(2)}, conv_attrs(g));
    return Gradients{by_input, GradValue(), g.op(f.forward, {g.x(0), g.dy()}, conv_attrs(g))};
  };
}

constexpr const char* kConvTypes = "T: {half, bfloat16, float, double, int32}";
constexpr const char* kStrides = "strides: list(int)";
constexpr const char* kUseCudnn = "use_cudnn_on_gpu: bool = true";

void register_conv2d(OpRegistry& r) {
  const std::vector<std::string> attrs = {kConvTypes,        kStrides,    kUseCudnn, kPaddingExplicit,
                                          kExplicitPaddings, kDataFormat, kDilations};
  std::vector<std::string> filter_attrs = attrs;
  filter_attrs[0] = kFloatTypes;
  r.add({.name = kConv2d.forward,
         .inputs = {"input: T", "filter: T"},
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "2-D cross-correlation of images with an HWIO filter.",
         .infer = conv2d_shape,
         .grad = conv2d_grad});
  r.add({.name = kConv2d.backprop_input,
         .inputs = {"input_sizes: int32", "filter: T", "out_backprop: T"},
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "Conv2D's gradient by its input; also the transposed convolution.",
         .infer = conv_backprop_input_shape,
         .grad = backprop_input_grad(kConv2d)});
  r.add({.name = kConv2d.backprop_filter,
         .inputs = {"input: T", "filter_sizes: int32", "out_backprop: T"},
         .outputs = {"output: T"},
         .attrs = filter_attrs,
         .doc = "Conv2D's gradient by its filter.",
         .infer = backprop_filter_shape,
         .grad = backprop_filter_grad(kConv2d)});
}

void register_depthwise(OpRegistry& r) {
  const std::vector<std::string> attrs = {kFloatTypes,       kStrides,    kPaddingExplicit,
                                          kExplicitPaddings, kDataFormat, kDilations};
  r.add({.name = kDepthwise.forward,
         .inputs = {"input: T", "filter: T"},
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "2-D cross-correlation of every channel with its own filters (HWIM).",
         .infer = depthwise_shape,
         .grad = depthwise_grad,
         .later_attrs = {kExplicitPaddings}});
  r.add({.name = kDepthwise.backprop_input,
         .inputs = {"input_sizes: int32", "filter: T", "out_backprop: T"},
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "DepthwiseConv2dNative's gradient by its input.",
         .infer = depthwise_backprop_input_shape,
         .grad = backprop_input_grad(kDepthwise),
         .later_attrs = {kExplicitPaddings}});
  r.add({.name = kDepthwise.backprop_filter,
         .inputs = {"input: T", "filter_sizes: int32", "out_backprop: T"},
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "DepthwiseConv2dNative's gradient by its filter.",
         .infer = backprop_filter_shape,
         .grad = backprop_filter_grad(kDepthwise),
         .later_attrs = {kExplicitPaddings}});
}

}  // namespace

void register_nn_conv(OpRegistry& r) {
  register_conv2d(r);
  register_depthwise(r);
}

}  // namespace sluice::graph::ops
