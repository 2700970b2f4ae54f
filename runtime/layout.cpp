#include "runtime/layout.h"

#include <algorithm>
#include <cstring>

#include "graph/support/check.h"

namespace sluice::runtime {
namespace {

// One axis of memory: `extent` steps, each moving `logical` positions along logical dim `dim`.
struct Axis {
  int dim;
  int64_t extent, logical, stride;
};

// The axes of a layout, outermost first, with their strides in elements.
std::vector<Axis> axes_of(const Layout& layout, const Dims& dims) {
  std::vector<Axis> axes;
  std::vector<int64_t> inner(dims.size(), 1);
  for (const Layout::Block& b : layout.blocks) inner[static_cast<size_t>(b.dim)] *= b.size;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int d = layout.order.empty() ? static_cast<int>(i) : layout.order[i];
    const int64_t in = inner[static_cast<size_t>(d)];
    axes.push_back({d, dims[static_cast<size_t>(d)] / in, in, 0});
  }
  std::vector<int64_t> rest = inner;
  for (const Layout::Block& b : layout.blocks) {
    int64_t& r = rest[static_cast<size_t>(b.dim)];
    r /= b.size;
    axes.push_back({b.dim, b.size, r, 0});
  }
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    axes[i].stride = stride;
    stride *= axes[i].extent;
  }
  return axes;
}

struct Loop {
  int64_t extent, src, dst;
};

// Splits every logical dim at the block borders of both layouts; false where the borders do not nest.
bool common_loops(const Dims& dims, const std::vector<Axis>& src, const std::vector<Axis>& dst,
                  std::vector<Loop>& loops) {
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<int64_t> cuts{1, dims[d]};
    for (const auto* axes : {&src, &dst})
      for (const Axis& a : *axes)
        if (a.dim == static_cast<int>(d)) cuts.push_back(a.logical);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t k = 0; k + 1 < cuts.size(); ++k) {
      if (cuts[k + 1] % cuts[k] != 0) return false;
      auto stride_at = [&](const std::vector<Axis>& axes) {
        // The axis whose steps are the largest that fit into cuts[k].
        const Axis* best = nullptr;
        for (const Axis& a : axes)
          if (a.dim == static_cast<int>(d) && a.logical <= cuts[k] && (!best || a.logical > best->logical))
            best = &a;
        return best->stride * (cuts[k] / best->logical);
      };
      loops.push_back({cuts[k + 1] / cuts[k], stride_at(src), stride_at(dst)});
    }
  }
  return true;
}

template <class T>
void run_loops(const std::vector<Loop>& loops, const T* src, T* dst) {
  const Loop inner = loops.back();
  const size_t depth = loops.size() - 1;
  std::vector<int64_t> index(depth, 0);
  int64_t s = 0, d = 0;
  for (;;) {
    if (inner.src == 1 && inner.dst == 1) {
      std::memcpy(dst + d, src + s, static_cast<size_t>(inner.extent) * sizeof(T));
    } else {
      for (int64_t i = 0; i < inner.extent; ++i) dst[d + i * inner.dst] = src[s + i * inner.src];
    }
    size_t k = depth;
    for (; k > 0; --k) {
      const Loop& l = loops[k - 1];
      s += l.src, d += l.dst;
      if (++index[k - 1] < l.extent) break;
      s -= l.src * l.extent, d -= l.dst * l.extent;
      index[k - 1] = 0;
    }
    if (k == 0) return;
  }
}

template <class T>
void reorder_elements(const Dims& dims, const Layout& src_layout, const void* src, const Layout& dst_layout,
                      void* dst) {
  const T* from = static_cast<const T*>(src);
  T* to = static_cast<T*>(dst);
  std::vector<Loop> loops;
  if (common_loops(dims, axes_of(src_layout, dims), axes_of(dst_layout, dims), loops)) {
    std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.dst > b.dst; });
    run_loops(loops, from, to);
    return;
  }
  std::vector<int64_t> index(dims.size(), 0);
  for (;;) {
    to[dst_layout.offset(dims, index)] = from[src_layout.offset(dims, index)];
    size_t k = dims.size();
    while (k > 0 && ++index[k - 1] == dims[k - 1]) index[--k] = 0;
    if (k == 0) return;
  }
}

struct Bytes16 {
  uint64_t a, b;
};

}  // namespace

void Layout::check(const Dims& dims) const {
  if (!order.empty()) {
    SLUICE_CHECK(order.size() == dims.size(), "layout ", str(), " of a value of shape ",
                 graph::dims_string(dims));
    std::vector<bool> seen(dims.size(), false);
    for (int d : order) {
      SLUICE_CHECK(d >= 0 && static_cast<size_t>(d) < dims.size() && !seen[static_cast<size_t>(d)], "layout ",
                   str(), " is no permutation");
      seen[static_cast<size_t>(d)] = true;
    }
  }
  std::vector<int64_t> inner(dims.size(), 1);
  for (const Block& b : blocks) {
    SLUICE_CHECK(b.dim >= 0 && static_cast<size_t>(b.dim) < dims.size() && b.size > 0, "block of layout ",
                 str());
    inner[static_cast<size_t>(b.dim)] *= b.size;
  }
  for (size_t d = 0; d < dims.size(); ++d)
    SLUICE_CHECK(dims[d] % inner[d] == 0, "blocks of layout ", str(), " do not divide ",
                 graph::dims_string(dims));
}

Layout Layout::channels_last(int rank) {
  Layout l;
  if (rank < 3) return l;
  l.order.push_back(0);
  for (int i = 2; i < rank; ++i) l.order.push_back(i);
  l.order.push_back(1);
  return l;
}

std::string Layout::str() const {
  if (plain()) return "plain";
  std::string s;
  for (int d : order) s += std::to_string(d);
  if (order.empty()) s += "rows";
  if (!blocks.empty()) s += '/';
  for (size_t i = 0; i < blocks.size(); ++i) s += cat(i ? "," : "", blocks[i].dim, ':', blocks[i].size);
  return s;
}

int64_t Layout::offset(const Dims& dims, const std::vector<int64_t>& index) const {
  int64_t offset = 0;
  for (const Axis& a : axes_of(*this, dims)) {
    // Position along this axis: the logical index counted in this axis' steps, within its extent.
    const int64_t i = index[static_cast<size_t>(a.dim)] / a.logical;
    offset += (a.extent > 0 ? i % a.extent : 0) * a.stride;
  }
  return offset;
}

std::string ValueSpec::str() const {
  return cat(dtype, graph::dims_string(dims), layout.plain() ? "" : "@", layout.plain() ? "" : layout.str());
}

void reorder(DType dtype, const Dims& dims, const Layout& src_layout, const void* src,
             const Layout& dst_layout, void* dst) {
  const int64_t n = graph::num_elements(dims);
  if (n == 0) return;
  const size_t size = graph::dtype_size(dtype);
  if (src_layout == dst_layout || dims.empty()) {
    std::memcpy(dst, src, static_cast<size_t>(n) * size);
    return;
  }
  switch (size) {
    case 1:
      return reorder_elements<uint8_t>(dims, src_layout, src, dst_layout, dst);
    case 2:
      return reorder_elements<uint16_t>(dims, src_layout, src, dst_layout, dst);
    case 4:
      return reorder_elements<uint32_t>(dims, src_layout, src, dst_layout, dst);
    case 8:
      return reorder_elements<uint64_t>(dims, src_layout, src, dst_layout, dst);
    case 16:
      return reorder_elements<Bytes16>(dims, src_layout, src, dst_layout, dst);
    default:
      SLUICE_CHECK(false, "a value of type ", dtype, " has no layout");
  }
}

}  // namespace sluice::runtime
