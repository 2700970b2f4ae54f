#pragma once
// What the CPU kernels share: the layouts of image values, their four dims whatever the data format, and the
// geometry of windows. Values with a channel dim are channels-last in memory: an NHWC value is plain, an NCHW
// value has Layout::channels_last.

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/vec.h"
#include "runtime/kernel.h"

namespace sluice::kernels::cpu {

using graph::Dims;
using graph::DType;
using runtime::Kernel;
using runtime::KernelDef;
using runtime::KernelMake;
using runtime::KernelRegistry;
using runtime::KernelRun;
using runtime::KernelSpec;
using runtime::Layout;
using runtime::Refusal;

/// Fast kernels are asked before the reference loops (0) in this order.
inline constexpr int kVectorPriority = 10, kLibraryPriority = 20;

inline size_t align64(size_t n) { return (n + 63) / 64 * 64; }

/// The dims of an image value by name.
struct ImageDims {
  int64_t n = 0, h = 0, w = 0, c = 0;
  int64_t pixels() const { return n * h * w; }
  int64_t elements() const { return pixels() * c; }
};
ImageDims image_dims(const Dims& dims, bool nchw);
/// Of attr data_format; false (NHWC) where the op has none.
bool is_nchw(const KernelSpec& spec);
/// Layout of an image value of that format: channels innermost.
Layout image_layout(bool nchw);

/// A window that slides over images.
struct WindowGeometry {
  int64_t kh = 1, kw = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
};
/// From strides, padding, explicit_paddings and dilations of the node; `ksize` gives kh, kw. False and a
/// reason for windows over batch or channels.
bool window_geometry(const KernelSpec& spec, const ImageDims& in, int64_t kh, int64_t kw, WindowGeometry& g,
                     std::string& why);

/// True when every input and output listed is float32; else the refusal says which is not.
bool all_float(const KernelSpec& spec, Refusal& refusal, std::vector<int> inputs);

/// Threads for a library primitive that shares out the terms of its sums among its threads: its bits depend
/// on their number, so there is one where the plan must be deterministic.
inline int summing_threads(const KernelSpec& spec) { return spec.deterministic ? 1 : spec.threads; }

/// The vector functions of this process's level.
const VecFns& fns();

}  // namespace sluice::kernels::cpu
