#pragma once
// Shape arithmetic shared by the rules of convolution, pooling and their gradients: data formats, the window
// attributes, TensorFlow's complaints about them. Pure; any thread.

#include "graph/infer.h"

namespace sluice::graph::ops {

/// Positions of batch, height, width and channel in a 4-D image tensor.
struct Layout {
  int n = 0, h = 1, w = 2, c = 3;
};
/// By the node's data_format attr; NHWC where it has none.
Layout layout_of(const Node& node);

/// The attr as 4 integers, or a failure that says what `op` requires.
std::vector<int64_t> four_ints(InferContext& c, std::string_view attr, std::string_view op,
                               std::string_view what);

/// Padding attrs of a convolution: before and after of height and width when EXPLICIT, checked.
struct Padding {
  std::string kind;
  int64_t before_h = 0, after_h = 0, before_w = 0, after_w = 0;
};
Padding padding_of(InferContext& c, const Layout& layout);

/// Output size along one dimension (unknown in, unknown out); fails with this context's message.
int64_t window_size(InferContext& c, int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                    const std::string& padding, int64_t before = 0, int64_t after = 0);

/// A shape of rank 4 put together from its parts.
Shape image_shape(const Layout& layout, int64_t n, int64_t h, int64_t w, int64_t channels);

}  // namespace sluice::graph::ops
