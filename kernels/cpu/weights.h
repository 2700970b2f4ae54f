#pragma once
// Moves convolution filters between TensorFlow's order (H,W,I,O) and the block formats of the library, on the
// compute team, sixteen lanes at a time: copying rows where output channels are innermost on both sides,
// transposing small tiles in registers where they are not. A step's own transposition costs a tenth of what a
// general reorder does, and variables stay in one order for every pass, optimizer and checkpoint.

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/vec.h"
#include "runtime/work_queue.h"

namespace sluice::kernels::cpu {

/// Where element ([g,] o, i, h, w) of the library's filter lies in TensorFlow's array.
struct FilterView {
  int64_t stride[5] = {};
  bool reversed = false;  // h and w run backwards (a data gradient computed as a forward convolution)
};

/// Filter [kh, kw, ic, oc] as o, i, h, w.
FilterView filter_view(int64_t kh, int64_t kw, int64_t ic, int64_t oc);
/// Filter [kh, kw, c, m] as g, o, i, h, w with g = c, o = m, i = 1.
FilterView depthwise_view(int64_t kh, int64_t kw, int64_t c, int64_t m);
/// The filter of the transposed convolution: o and i change places, taps run backwards.
FilterView transposed_view(int64_t kh, int64_t kw, int64_t ic, int64_t oc);

/// False for block formats that these functions cannot take apart.
bool can_pack(const MemDesc& desc);
/// Fills `packed` (padding with zeros). `scale`, if any, multiplies output channel o by scale[o] (not for
/// groups).
void pack_filter(const MemDesc& to, float* packed, const float* filter, const FilterView& view,
                 const float* scale, const VecFns& fns, runtime::WorkQueue& queue);
void unpack_filter(const MemDesc& from, const float* packed, float* filter, const FilterView& view,
                   const VecFns& fns, runtime::WorkQueue& queue);

}  // namespace sluice::kernels::cpu
