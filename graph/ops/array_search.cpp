// Set difference of vectors: how many elements come out depends on their values.

#include <algorithm>

#include "graph/fold.h"
#include "graph/infer.h"
#include "graph/ops/register.h"

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
}

}  // namespace sluice::graph::ops
