#include "graph/ops/spatial.h"

#include "graph/support/check.h"

namespace sluice::graph::ops {

Layout layout_of(const Node& node) {
  if (node.attr_or<std::string>("data_format", "NHWC") == "NCHW") return {0, 2, 3, 1};
  return {};
}

std::vector<int64_t> four_ints(InferContext& c, std::string_view attr, std::string_view op,
                               std::string_view what) {
  auto values = c.attr<std::vector<int64_t>>(attr);
  if (values.size() != 4)
    c.fail(cat(op, " requires the ", what, " attribute to contain 4 values, but got: ", values.size()));
  return values;
}

Padding padding_of(InferContext& c, const Layout& layout) {
  Padding p;
  p.kind = c.attr<std::string>("padding");
  const auto pads = c.node().attr_or<std::vector<int64_t>>("explicit_paddings", {});
  if (p.kind != "EXPLICIT") {
    if (!pads.empty())
      c.fail("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
    return p;
  }
  if (pads.size() != 8)
    c.fail(cat("explicit_paddings attribute must contain 8 values, but got: ", pads.size()));
  for (int64_t pad : pads)
    if (pad < 0) c.fail("All elements of explicit_paddings must be nonnegative");
  const auto at = [&](int dim, int side) { return pads[static_cast<size_t>(2 * dim + side)]; };
  if (at(layout.n, 0) || at(layout.n, 1) || at(layout.c, 0) || at(layout.c, 1))
    c.fail("Nonzero explicit padding in the batch or depth dimensions is not supported");
  p.before_h = at(layout.h, 0);
  p.after_h = at(layout.h, 1);
  p.before_w = at(layout.w, 0);
  p.after_w = at(layout.w, 1);
  return p;
}

int64_t window_size(InferContext& c, int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                    const std::string& padding, int64_t before, int64_t after) {
  if (stride <= 0) c.fail(cat("Stride must be > 0, but got ", stride));
  if (dilation <= 0) c.fail(cat("Dilation rate must be >= 1, but got ", dilation));
  if (in < 0 || (kernel < 0 && padding != "SAME")) return kUnknownDim;
  if (padding == "SAME") return (in + stride - 1) / stride;  // whatever the kernel is
  const int64_t reach = (kernel - 1) * dilation + 1, padded = in + before + after;
  if (padded < reach) c.fail(cat("Negative dimension size caused by subtracting ", reach, " from ", padded));
  return window(in, kernel, stride, dilation, padding, before, after).out;
}

Shape image_shape(const Layout& layout, int64_t n, int64_t h, int64_t w, int64_t channels) {
  Shape s = Shape::of_rank(4);
  s.set_dim(layout.n, n);
  s.set_dim(layout.h, h);
  s.set_dim(layout.w, w);
  s.set_dim(layout.c, channels);
  return s;
}

}  // namespace sluice::graph::ops
