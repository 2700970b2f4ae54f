#include "kernels/reference/window.h"

namespace sluice::kernels {

Image image_of(const Dims& d, bool nchw) {
  SLUICE_REQUIRE(d.size() == 4, Code::kInvalidArgument, "input must be 4-dimensional: ", dims_string(d));
  if (nchw) return {d[0], d[2], d[3], d[1], d[1] * d[2] * d[3], d[3], 1, d[2] * d[3]};
  return {d[0], d[1], d[2], d[3], d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
}

WindowAttrs window_attrs(const KernelSpec& spec) {
  WindowAttrs a;
  const auto format = spec.attr_or<std::string>("data_format", "NHWC");
  SLUICE_REQUIRE(format == "NHWC" || format == "NCHW", Code::kUnimplemented, "data_format ", format,
                 " is not supported; use NHWC or NCHW");
  a.nchw = format == "NCHW";
  const size_t h = a.nchw ? 2 : 1, w = h + 1, c = a.nchw ? 1 : 3;
  a.padding = spec.attr_or<std::string>("padding", "VALID");
  auto read = [&](const char* name, int64_t* to, int64_t* depth) {
    const auto v = spec.attr_or<std::vector<int64_t>>(name, {1, 1, 1, 1});
    if (v.empty()) return;
    SLUICE_REQUIRE(v.size() == 4, Code::kInvalidArgument, name, " must have 4 entries, got ", v.size());
    SLUICE_REQUIRE(v[0] == 1, Code::kUnimplemented, name, " over the batch dimension is not supported");
    SLUICE_REQUIRE(depth || v[c] == 1, Code::kUnimplemented, name,
                   " over the depth dimension is not supported");
    to[0] = v[h];
    to[1] = v[w];
    if (depth) *depth = v[c];
  };
  int64_t depth_stride = 1;
  read("ksize", a.kernel, &a.depth_window);
  read("strides", a.stride, &depth_stride);
  SLUICE_REQUIRE(depth_stride == a.depth_window || depth_stride == 1, Code::kUnimplemented,
                 "Depthwise max pooling requires the depth window to equal the depth stride");
  read("dilations", a.dilation, nullptr);
  if (a.padding == "EXPLICIT") {
    const auto p = spec.attr_or<std::vector<int64_t>>("explicit_paddings", {});
    SLUICE_REQUIRE(p.size() == 8, Code::kInvalidArgument, "explicit_paddings must have 8 entries, got ",
                   p.size());
    for (size_t side = 0; side < 2; ++side) {
      a.pads[0][side] = p[2 * h + side];
      a.pads[1][side] = p[2 * w + side];
    }
  }
  return a;
}

int64_t pad_before(const WindowAttrs& a, int dim, int64_t in, int64_t k) {
  if (a.padding == "EXPLICIT") return a.pads[dim][0];
  return graph::window(in, k, a.stride[dim], a.dilation[dim], a.padding).before;
}

}  // namespace sluice::kernels
