#pragma once
// What the shape and value rules of graph/ops share: checks with TensorFlow's wording, arithmetic on
// dimensions that may be unknown (-1), and element moves on small integer tensors of any rank (PartialInts).
// Pure; internal to graph/ops.

#include <functional>
#include <optional>
#include <string>

#include "graph/fold.h"
#include "graph/infer.h"

namespace sluice::graph::ops {

/// Fails with cat(parts) unless `ok`.
template <class... Parts>
void require(InferContext& c, bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    c.fail(cat(parts...));
}

/// "Shape must be rank 0 but is rank …" unless input i is a scalar (or of unknown rank).
void require_scalar(InferContext& c, int i);
/// The first `rank` dimensions and the rest; a shape of unknown rank gives unknown dimensions and a tail of
/// unknown rank.
Shape head_of(const Shape& s, int rank);
Shape tail_of(const Shape& s, int from);
/// a + b, a − b ("Negative dimension size caused by subtracting …"), a · b; -1 when either is unknown.
int64_t add_dims(int64_t a, int64_t b);
int64_t subtract_dims(InferContext& c, int64_t a, int64_t b);
int64_t multiply_dims(int64_t a, int64_t b);
/// value / divisor; "Dimension size must be evenly divisible by …" with `why` behind it.
int64_t divide_dims(InferContext& c, int64_t value, int64_t divisor, std::string_view why = {});
/// Merges, and puts `prefix` before the reason when that can't be.
Shape merge_because(InferContext& c, const Shape& a, const Shape& b, const std::string& prefix);
/// "Dimension must be <want> but is <got>" when the known dimension differs.
void require_dim(InferContext& c, int64_t got, int64_t want);

/// The shape of `target` after its slices at `indices` [.., d] took `updates` [..] + rest, where the first d
/// dimensions of the target are indexed; fails with TensorFlow's text unless they fit.
Shape check_scatter_nd(InferContext& c, const Shape& indices, const Shape& updates, const Shape& target);

/// Input i as integers, of any rank; nullopt when nothing is known.
std::optional<PartialInts> ints(InferContext& c, int i);
/// Element i of what is known.
std::optional<int64_t> element(const std::optional<PartialInts>& value, size_t i);
/// The single element of input i (a scalar or one-element tensor) where it is known.
std::optional<int64_t> scalar_int(InferContext& c, int i);

// Small integer tensors.

/// Larger values are never folded.
inline constexpr int64_t kMaxFoldElements = 1024;

PartialInts make_ints(const Dims& dims, std::vector<std::optional<int64_t>> values);
PartialInts known_ints(const std::vector<int64_t>& values);
PartialInts known_int(int64_t value);
PartialInts ints_of(const Shape& shape);  // rank must be known
/// Input i of a fold, or unknown elements of its dims where only the shape is known; nullopt when neither is.
std::optional<PartialInts> fold_input(FoldContext& c, int i);
/// Its elements when all are known.
std::optional<std::vector<int64_t>> fold_known(FoldContext& c, int i);
std::optional<int64_t> fold_scalar(FoldContext& c, int i);
bool folds_to_ints(const FoldContext& c, int output = 0);
/// The same elements under other dims.
PartialInts with_dims(PartialInts value, const Dims& dims);
/// out[index] = value[source(index)] for every index of `dims`; `source` writes the source index. Nothing
/// when `dims` is too large.
std::optional<PartialInts> gather_ints(const PartialInts& value, const Dims& dims,
                                       const std::function<void(const Dims& index, Dims& source)>& source);
/// Joins along an axis; dims beside it must agree.
PartialInts concat_ints(const std::vector<PartialInts>& parts, int axis);

/// Output 0 = what is known of input 0 (Identity and its kin).
void fold_input0(FoldContext& c);

}  // namespace sluice::graph::ops
