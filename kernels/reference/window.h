#pragma once
// Geometry of 2-D windows (convolution, pooling) in either data format, bound from a node's attributes.

#include "graph/infer.h"
#include "kernels/reference/common.h"

namespace sluice::kernels {

/// A 4-D activation: dims and element strides by role, whatever the data format.
struct Image {
  int64_t n, h, w, c;
  int64_t sn, sh, sw, sc;
};
Image image_of(const Dims& dims, bool nchw);

struct WindowAttrs {
  bool nchw = false;
  std::string padding;
  int64_t kernel[2] = {1, 1};  // pooling only: rows, cols
  int64_t depth_window = 1;    // pooling only
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t pads[2][2] = {{0, 0}, {0, 0}};  // EXPLICIT: before, after of rows and cols
};

/// Reads data_format, strides, padding and, where the op has them, dilations, explicit_paddings, ksize.
/// Unimplemented for windows over the batch.
WindowAttrs window_attrs(const KernelSpec& spec);

/// Padding before the first row or column (dim 0 = rows) for `in` cells under a kernel of `k`.
int64_t pad_before(const WindowAttrs& a, int dim, int64_t in, int64_t k);

}  // namespace sluice::kernels
