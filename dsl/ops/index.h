#pragma once
// Elements by condition and by index: positions, distinct values, masks, segments, rows of variables read and
// written without touching the others. TensorFlow's functions, names and argument order. How many results
// come may depend on the values; the shape is then open until the run. The builder's thread.
//
//   Tensor rows = gather(table, ids);              // reads the rows of a variable, not the table
//   Node& n = scatter_add(table, ids, deltas);     // duplicates add up

#include <optional>
#include <string>

#include "dsl/partitioned.h"
#include "dsl/tensor.h"
#include "dsl/variable.h"

namespace sluice::dsl {

/// Coordinates of the true (or non-zero) elements: int64 [count, rank], in row-major order.
Tensor where(const Operand& condition, const std::string& name = {}, Loc loc = Loc::current());

struct UniqueResult {
  Tensor y, idx, count;  // count is empty unless asked for
};
/// The distinct elements of a vector in the order they first appear, and each element's position among them.
UniqueResult unique(const Operand& x, DType out_idx = DType::kInt32, const std::string& name = {},
                    Loc loc = Loc::current());
UniqueResult unique_with_counts(const Operand& x, DType out_idx = DType::kInt32, const std::string& name = {},
                                Loc loc = Loc::current());

/// The parts of `tensor` where `mask` is true: the dimensions axis … axis + rank(mask) become one.
/// InvalidArgument "mask cannot be scalar.", for a mask of unknown rank, or where the shapes do not fit.
Tensor boolean_mask(const Operand& tensor, const Operand& mask, int axis = 0, const std::string& name = {},
                    Loc loc = Loc::current());

/// output[i…] = params[indices[i…, :]…]. Of a resource variable only the slices asked for are read.
Tensor gather_nd(const Operand& params, const Operand& indices, const std::string& name = {},
                 Loc loc = Loc::current());
Tensor gather_nd(const Variable& params, const Operand& indices, const std::string& name = {},
                 Loc loc = Loc::current());
/// Rows of an embedding table; its gradient is IndexedSlices.
Tensor embedding_lookup(const Variable& params, const Operand& ids, const std::string& name = {},
                        Loc loc = Loc::current());
/// How ids name the rows of a table in n parts: row id / n of part id % n, or the parts in a row as one
/// table.
enum class PartitionStrategy { kMod, kDiv };
/// The same of a table in parts along axis 0; each part is asked for its rows alone. The parts of a
/// partitioned variable lie one behind another, which is kDiv; TensorFlow's default is "mod".
Tensor embedding_lookup(const PartitionedVariable& params, const Operand& ids,
                        PartitionStrategy strategy = PartitionStrategy::kDiv, const std::string& name = {},
                        Loc loc = Loc::current());
/// zeros(shape) plus the updates at their indices; duplicates add.
Tensor scatter_nd(const Operand& indices, const Operand& updates, const std::vector<int64_t>& shape,
                  const std::string& name = {}, Loc loc = Loc::current());

/// Writes to rows of a variable, v[indices[k]] op= updates[k] one after another: the op that writes. The
/// updates have the shape indices.shape + v.shape[1:] or are one scalar. The run fails with InvalidArgument
/// for an index that is no row.
Node& scatter_update(const Variable& v, const Operand& indices, const Operand& updates,
                     const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_add(const Variable& v, const Operand& indices, const Operand& updates,
                  const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_sub(const Variable& v, const Operand& indices, const Operand& updates,
                  const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_mul(const Variable& v, const Operand& indices, const Operand& updates,
                  const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_div(const Variable& v, const Operand& indices, const Operand& updates,
                  const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_min(const Variable& v, const Operand& indices, const Operand& updates,
                  const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_max(const Variable& v, const Operand& indices, const Operand& updates,
                  const std::string& name = {}, Loc loc = Loc::current());
/// The same for slices: indices [.., depth] name v[indices[k, 0], …, indices[k, depth - 1]].
Node& scatter_nd_update(const Variable& v, const Operand& indices, const Operand& updates,
                        const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_nd_add(const Variable& v, const Operand& indices, const Operand& updates,
                     const std::string& name = {}, Loc loc = Loc::current());
Node& scatter_nd_sub(const Variable& v, const Operand& indices, const Operand& updates,
                     const std::string& name = {}, Loc loc = Loc::current());

/// Reductions of the rows with one segment id. Ids ascend; their largest decides the length of the result.
Tensor segment_sum(const Operand& data, const Operand& segment_ids, const std::string& name = {},
                   Loc loc = Loc::current());
Tensor segment_mean(const Operand& data, const Operand& segment_ids, const std::string& name = {},
                    Loc loc = Loc::current());
Tensor segment_prod(const Operand& data, const Operand& segment_ids, const std::string& name = {},
                    Loc loc = Loc::current());
Tensor segment_max(const Operand& data, const Operand& segment_ids, const std::string& name = {},
                   Loc loc = Loc::current());
Tensor segment_min(const Operand& data, const Operand& segment_ids, const std::string& name = {},
                   Loc loc = Loc::current());
/// The same in any order, with the number of segments given; negative ids are dropped.
Tensor unsorted_segment_prod(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                             const std::string& name = {}, Loc loc = Loc::current());
Tensor unsorted_segment_max(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                            const std::string& name = {}, Loc loc = Loc::current());
Tensor unsorted_segment_min(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                            const std::string& name = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl
