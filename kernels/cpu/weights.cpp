#include "kernels/cpu/weights.h"

#include <algorithm>
#include <cstring>

#include "graph/support/check.h"

namespace sluice::kernels::cpu {
namespace {

// A block format as a grid of two-dimensional tiles: rows along dim `a`, contiguous columns along dim `b`.
struct Tiling {
  int a = -1, b = -1;
  int64_t a_tile = 1, b_tile = 1, a_stride = 0;
  int64_t outer[6];       // tiles along each dim
  int64_t outer_step[6];  // elements between tiles
  int64_t count = 1;
};

bool make_tiling(const MemDesc& d, Tiling& t) {
  int channel_in = d.ndims == 5 ? 2 : 1, channel_out = d.ndims == 5 ? 1 : 0;
  if (d.num_blocks > 2) return false;
  for (int i = 0; i < d.ndims; ++i) {
    t.outer[i] = d.padded[i];
    t.outer_step[i] = d.strides[i];
  }
  if (d.num_blocks == 0) {
    for (int i = 0; i < d.ndims && t.b < 0; ++i)
      if (d.strides[i] == 1 && d.dims[i] > 1) t.b = i;
    if (t.b < 0) t.b = channel_out;
    t.b_tile = d.dims[t.b];
  } else {
    t.b = d.block_dim[d.num_blocks - 1];
    t.b_tile = d.block_size[d.num_blocks - 1];
  }
  if (d.num_blocks == 2) {
    t.a = d.block_dim[0];
    if (t.a == t.b) return false;
    t.a_tile = d.block_size[0];
    t.a_stride = t.b_tile;
    t.outer[t.a] = d.padded[t.a] / t.a_tile;
  } else {
    t.a = t.b == channel_in ? channel_out : channel_in;
    t.a_tile = d.dims[t.a];
    t.a_stride = d.strides[t.a];
    t.outer[t.a] = 1;
  }
  t.outer[t.b] = d.padded[t.b] / t.b_tile;
  for (int i = 0; i < d.ndims; ++i) t.count *= t.outer[i];
  return true;
}

// f(packed offset, filter offset, a0, b0, rows, columns) for every tile.
template <class F>
void for_tiles(const MemDesc& d, const FilterView& view, runtime::WorkQueue& queue, F&& f) {
  Tiling t;
  SLUICE_CHECK(make_tiling(d, t), "a filter format that cannot be packed");
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, t.a_tile * t.b_tile));
  queue.parallel_for(t.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      int64_t rest = k, packed = 0, filter = 0, a0 = 0, b0 = 0;
      for (int i = d.ndims - 1; i >= 0; --i) {
        const int64_t at = rest % t.outer[i];
        rest /= t.outer[i];
        packed += at * t.outer_step[i];
        int64_t first = at;
        if (i == t.a) first = a0 = at * t.a_tile;
        if (i == t.b) first = b0 = at * t.b_tile;
        if (view.reversed && i >= d.ndims - 2) first = d.dims[i] - 1 - first;
        filter += first * view.stride[i];
      }
      f(t, packed, filter, a0, b0, std::min(t.a_tile, d.dims[t.a] - a0),
        std::min(t.b_tile, d.dims[t.b] - b0));
    }
  });
}

}  // namespace

FilterView filter_view(int64_t kh, int64_t kw, int64_t ic, int64_t oc) {
  (void)kh;
  return {{1, oc, kw * ic * oc, ic * oc, 0}, false};
}

FilterView depthwise_view(int64_t kh, int64_t kw, int64_t c, int64_t m) {
  (void)kh;
  return {{m, 1, c * m, kw * c * m, c * m}, false};
}

FilterView transposed_view(int64_t kh, int64_t kw, int64_t ic, int64_t oc) {
  (void)kh;
  return {{oc, 1, kw * ic * oc, ic * oc, 0}, true};
}

bool can_pack(const MemDesc& desc) {
  Tiling t;
  return make_tiling(desc, t);
}

void pack_filter(const MemDesc& to, float* packed, const float* filter, const FilterView& view,
                 const float* scale, const VecFns& fns, runtime::WorkQueue& queue) {
  for_tiles(
      to, view, queue,
      [&](const Tiling& t, int64_t dst, int64_t src, int64_t a0, int64_t b0, int64_t rows, int64_t cols) {
        float* d = packed + dst;
        const float* s = filter + src;
        const int64_t sa = view.stride[t.a], sb = view.stride[t.b];
        if (rows < t.a_tile || cols < t.b_tile)
          for (int64_t r = 0; r < t.a_tile; ++r) std::fill_n(d + r * t.a_stride, t.b_tile, 0.f);
        if (rows <= 0 || cols <= 0) return;
        if (sb == 1) {
          for (int64_t r = 0; r < rows; ++r)
            std::memcpy(d + r * t.a_stride, s + r * sa, static_cast<size_t>(cols) * 4);
        } else if (sa == 1) {
          fns.transpose(d, t.a_stride, s, sb, cols, rows);
        } else {
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) d[r * t.a_stride + c] = s[r * sa + c * sb];
        }
        if (!scale) return;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c) d[r * t.a_stride + c] *= scale[t.a == 0 ? a0 + r : b0 + c];
      });
}

void unpack_filter(const MemDesc& from, const float* packed, float* filter, const FilterView& view,
                   const VecFns& fns, runtime::WorkQueue& queue) {
  for_tiles(from, view, queue,
            [&](const Tiling& t, int64_t src, int64_t dst, int64_t, int64_t, int64_t rows, int64_t cols) {
              const float* s = packed + src;
              float* d = filter + dst;
              const int64_t da = view.stride[t.a], db = view.stride[t.b];
              if (rows <= 0 || cols <= 0) return;
              if (db == 1) {
                for (int64_t r = 0; r < rows; ++r)
                  std::memcpy(d + r * da, s + r * t.a_stride, static_cast<size_t>(cols) * 4);
              } else if (da == 1) {
                fns.transpose(d, db, s, t.a_stride, rows, cols);
              } else {
                for (int64_t r = 0; r < rows; ++r)
                  for (int64_t c = 0; c < cols; ++c) d[r * da + c * db] = s[r * t.a_stride + c];
              }
            });
}

}  // namespace sluice::kernels::cpu
