// Ops whose number of results depends on the values: set difference, distinct elements, positions of what is
// not zero.

#include <algorithm>

#include "graph/fold.h"
#include "graph/infer.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

void list_diff_shape(InferContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 1);
  const auto x = c.partial(0), y = c.partial(1);
  Shape out = Shape::of_rank(1);
  if (x && y && x->fully_known() && y->fully_known()) {
    int64_t kept = 0;
    for (const auto& v : x->values)
      kept += std::find(y->values.begin(), y->values.end(), v) == y->values.end();
    out = Shape{kept};
  }
  c.set_output(0, out);
  c.set_output(1, out);
}

void fold_list_diff(FoldContext& c) {
  const auto x = c.input(0), y = c.input(1);
  if (!x || !y || !x->fully_known() || !y->fully_known()) return;
  PartialInts values, positions;
  for (size_t i = 0; i < x->values.size(); ++i) {
    if (std::find(y->values.begin(), y->values.end(), x->values[i]) != y->values.end()) continue;
    values.values.push_back(x->values[i]);
    positions.values.emplace_back(static_cast<int64_t>(i));
  }
  c.set_output(0, std::move(values));
  c.set_output(1, std::move(positions));
}

// y: as many as there are distinct values; idx (and count) beside it.
void unique_shape(InferContext& c) {
  const Shape x = c.with_rank(0, 1);
  c.set_output(0, Shape::of_rank(1));
  c.set_output(1, x);
  if (c.num_outputs() > 2) c.set_output(2, Shape::of_rank(1));
}

// As Unique along `axis` (a vector of at most one element; none: x is a vector).
void unique_v2_shape(InferContext& c) {
  const Shape& x = c.input(0);
  if (c.num_outputs() > 2) c.set_output(2, Shape::of_rank(1));
  c.set_output(1, Shape::of_rank(1));
  const auto axis = ints(c, 1);
  if (!x.known_rank()) return;
  if (!axis || !axis->fully_known()) return c.set_output(0, Shape::of_rank(x.rank()));
  require(c, axis->values.size() <= 1, "axis does not support input tensors larger than 1 elements");
  require(c, !axis->values.empty() || x.rank() == 1, "unique expects a 1D vector.");
  const int at = axis->values.empty() ? 0 : c.axis(*axis->values[0], x.rank());
  c.set_output(0, x.slice(0, at).concat(Shape{kUnknownDim}).concat(x.slice(at + 1, x.rank())));
  c.set_output(1, Shape{x.dim(at)});
}

void where_shape(InferContext& c) {
  const Shape& x = c.input(0);
  c.set_output(0, Shape{kUnknownDim, x.known_rank() ? int64_t{x.rank()} : kUnknownDim});
}

}  // namespace

void register_array_search(OpRegistry& r) {
  r.add({.name = "ListDiff",
         .inputs = {"x: T", "y: T"},
         .outputs = {"out: T", "idx: out_idx"},
         .attrs = {"T: type", "out_idx: {int32, int64} = int32"},
         .doc = "Elements of x that are not in y, and their positions in x.",
         .traits = kDynamicShape | kNotDifferentiable,
         .infer = list_diff_shape,
         .fold = fold_list_diff});
  constexpr uint32_t kSearch = kDynamicShape | kNotDifferentiable;
  r.add({.name = "Unique",
         .inputs = {"x: T"},
         .outputs = {"y: T", "idx: out_idx"},
         .attrs = {"T: type", "out_idx: {int32, int64} = int32"},
         .doc = "The distinct elements of a vector in the order of their first appearance, and for each "
                "element its position among them.",
         .traits = kSearch,
         .infer = unique_shape});
  r.add({.name = "UniqueWithCounts",
         .inputs = {"x: T"},
         .outputs = {"y: T", "idx: out_idx", "count: out_idx"},
         .attrs = {"T: type", "out_idx: {int32, int64} = int32"},
         .doc = "As Unique, and how often each distinct element appears.",
         .traits = kSearch,
         .infer = unique_shape});
  r.add({.name = "UniqueV2",
         .inputs = {"x: T", "axis: Taxis"},
         .outputs = {"y: T", "idx: out_idx"},
         .attrs = {"T: type", "Taxis: {int32, int64} = int64", "out_idx: {int32, int64} = int32"},
         .doc = "As Unique for the slices along an axis; without an axis x is a vector.",
         .traits = kSearch,
         .infer = unique_v2_shape});
  r.add({.name = "UniqueWithCountsV2",
         .inputs = {"x: T", "axis: Taxis"},
         .outputs = {"y: T", "idx: out_idx", "count: out_idx"},
         .attrs = {"T: type", "Taxis: {int32, int64} = int64", "out_idx: {int32, int64} = int32"},
         .doc = "As UniqueV2, and how often each distinct slice appears.",
         .traits = kSearch,
         .infer = unique_v2_shape});
  r.add({.name = "Where",
         .inputs = {"input: T"},
         .outputs = {"index: int64"},
         .attrs = {"T: {numbertype, bool} = bool"},
         .doc = "Coordinates of the elements that are true (or not zero), one row an element, in row-major "
                "order.",
         .traits = kSearch,
         .infer = where_shape});
}

}  // namespace sluice::graph::ops
