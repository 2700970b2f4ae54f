#pragma once
// A box inside a tensor, as partitioned variables are saved: a start and a length for each dimension, length
// -1 for all of it (graph-and-training §7.4 "Slices"). Values only; any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/array.h"

namespace sluice::runtime::io {

struct SliceDim {
  int64_t start = 0, length = -1;
  bool operator==(const SliceDim&) const = default;
};
using TensorSlice = std::vector<SliceDim>;

/// What an entry of `shape_and_slices` says: "4 8 0,2:-", the slice as written ("-" stays -1, which the key
/// of the slice depends on). The empty string is the whole tensor (known == false).
struct SliceSpec {
  bool known = false;
  Dims full_dims;
  TensorSlice slice;
};
/// InvalidArgument naming the spec when it cannot be read or leaves the tensor.
SliceSpec parse_slice_spec(std::string_view text);

/// The slice with every -1 replaced; InvalidArgument when it leaves `full`.
TensorSlice resolve_slice(const TensorSlice& slice, const Dims& full);
Dims slice_dims(const TensorSlice& resolved);
bool covers(const TensorSlice& resolved, const Dims& full);

/// The key (of the slice as written) under which a checkpoint's index keeps a slice (an order-preserving code
/// of name, rank and extents).
std::string slice_key(std::string_view name, const TensorSlice& slice);

/// Copies `part` into `whole` at the slice, or takes it out. Same dtype; the slice is resolved.
void insert_slice(const Array& part, const TensorSlice& slice, Array* whole);
Array extract_slice(const Array& whole, const TensorSlice& slice);

}  // namespace sluice::runtime::io
