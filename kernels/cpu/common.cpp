#include "kernels/cpu/common.h"

#include <algorithm>

#include "graph/infer.h"
#include "runtime/cpu_features.h"

namespace sluice::kernels::cpu {

ImageDims image_dims(const Dims& dims, bool nchw) {
  if (nchw) return {dims[0], dims[2], dims[3], dims[1]};
  return {dims[0], dims[1], dims[2], dims[3]};
}

bool is_nchw(const KernelSpec& spec) { return spec.attr_or<std::string>("data_format", "NHWC") == "NCHW"; }

Layout image_layout(bool nchw) { return nchw ? Layout::channels_last(4) : Layout{}; }

bool window_geometry(const KernelSpec& spec, const ImageDims& in, int64_t kh, int64_t kw, WindowGeometry& g,
                     std::string& why) {
  const bool nchw = is_nchw(spec);
  const int h = nchw ? 2 : 1, w = nchw ? 3 : 2, c = nchw ? 1 : 3;
  auto at = [](const std::vector<int64_t>& v, int i) { return v.empty() ? 1 : v[static_cast<size_t>(i)]; };
  std::vector<int64_t> strides = spec.attr<std::vector<int64_t>>("strides");
  std::vector<int64_t> dilations = spec.attr_or<std::vector<int64_t>>("dilations", {});
  if (at(strides, 0) != 1 || at(strides, c) != 1 || at(dilations, 0) != 1 || at(dilations, c) != 1) {
    why = "a window that moves over batch or channels";
    return false;
  }
  g.kh = kh, g.kw = kw;
  g.stride_h = at(strides, h), g.stride_w = at(strides, w);
  g.dilation_h = at(dilations, h), g.dilation_w = at(dilations, w);
  std::string padding = spec.attr<std::string>("padding");
  std::vector<int64_t> pads = spec.attr_or<std::vector<int64_t>>("explicit_paddings", {});
  auto pad = [&](int dim, int side) {
    return pads.size() == 8 ? pads[static_cast<size_t>(2 * dim + side)] : int64_t{0};
  };
  graph::Window rows = graph::window(in.h, kh, g.stride_h, g.dilation_h, padding, pad(h, 0), pad(h, 1));
  graph::Window cols = graph::window(in.w, kw, g.stride_w, g.dilation_w, padding, pad(w, 0), pad(w, 1));
  g.pad_top = rows.before, g.pad_left = cols.before;
  // What the windows reach past the end; rows that no window reaches are left over, not padding.
  auto past = [](int64_t out, int64_t stride, int64_t k, int64_t dilation, int64_t in_size, int64_t before) {
    return std::max<int64_t>(0, (out - 1) * stride + (k - 1) * dilation + 1 - in_size - before);
  };
  g.pad_bottom = past(rows.out, g.stride_h, kh, g.dilation_h, in.h, rows.before);
  g.pad_right = past(cols.out, g.stride_w, kw, g.dilation_w, in.w, cols.before);
  return true;
}

bool all_float(const KernelSpec& spec, Refusal& refusal, std::vector<int> inputs) {
  for (int i : inputs)
    if (spec.inputs[static_cast<size_t>(i)].dtype != DType::kFloat) {
      refusal.reason = cat("input ", i, " is ", spec.inputs[static_cast<size_t>(i)].dtype, ", not float");
      return false;
    }
  return true;
}

const VecFns& fns() { return vec_fns(runtime::cpu_isa()); }

}  // namespace sluice::kernels::cpu
