#pragma once
// The physical order of a value's elements. Logical dims never change; a Layout says how they lie in memory:
// a permutation of the dims, outermost first, and then inner blocks (nChw16c = order N,C,H,W with one block
// of 16 on C). Blocked dims must divide evenly: nothing is ever padded. A value type; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"

namespace sluice::runtime {

using graph::Dims;
using graph::DType;

struct Layout {
  struct Block {
    int dim = 0;
    int size = 1;
    bool operator==(const Block&) const = default;
  };
  std::vector<int> order;     // empty: row-major
  std::vector<Block> blocks;  // outermost first

  bool plain() const { return order.empty() && blocks.empty(); }
  /// Throws Internal unless the order is a permutation and the blocks divide `dims`.
  void check(const Dims& dims) const;
  bool operator==(const Layout&) const = default;
  /// Logical N,C,H,W (or any rank) with the channel dim innermost.
  static Layout channels_last(int rank);
  /// "plain", "nhwc"-like "0231", "0123/1:16".
  std::string str() const;
  /// Offset in elements of a logical index.
  int64_t offset(const Dims& dims, const std::vector<int64_t>& index) const;
};

/// What a plan knows of a value: element type, logical dims, physical layout.
struct ValueSpec {
  DType dtype = DType::kInvalid;
  Dims dims;
  Layout layout;
  int64_t elements() const { return graph::num_elements(dims); }
  size_t bytes() const { return static_cast<size_t>(elements()) * graph::dtype_size(dtype); }
  bool operator==(const ValueSpec&) const = default;
  std::string str() const;
};

/// Copies the elements of one value from a physical order to another (any dtype of fixed size). `src` and
/// `dst` do not overlap.
void reorder(DType dtype, const Dims& dims, const Layout& src_layout, const void* src,
             const Layout& dst_layout, void* dst);

}  // namespace sluice::runtime
