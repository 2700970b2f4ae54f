#include "passes/aggregation.h"

#include <algorithm>
#include <map>

#include "passes/emit.h"

namespace sluice::passes {

using graph::ColocateWith;
using graph::IndexedSlices;
using graph::NameScope;

namespace {

Output add_n(Graph& g, const std::vector<Output>& terms, Loc loc) {
  return terms.size() == 1 ? terms[0] : Emit{g, loc}.op("AddN", terms);
}

// One AddN a device, beside its first term, then one over the partial sums.
Output add_n_by_device(Graph& g, const std::vector<Output>& terms, Loc loc) {
  std::map<std::string, std::vector<Output>> by_device;
  for (const Output& t : terms) by_device[t.node->device()].push_back(t);
  std::vector<Output> sums;
  for (auto& [device, on_it] : by_device) {
    ColocateWith beside(g, on_it[0].node, /*ignore_existing=*/true);
    sums.push_back(add_n(g, on_it, loc));
  }
  return add_n(g, sums, loc);
}

Output add_n_mixed(Graph& g, const std::vector<GradValue>& parts, Loc loc) {
  NameScope scope(g, "AddN");
  Emit e{g, loc};
  std::vector<Output> terms;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_slices()) {
      terms.push_back(parts[i].dense);
      continue;
    }
    const IndexedSlices& s = parts[i].slices;
    SLUICE_REQUIRE(s.dense_shape, Code::kInvalidArgument,
                   "Tensor conversion requested for IndexedSlices without dense_shape: ", s.values.name());
    Output rows;
    {
      NameScope slice(g, "strided_slice");
      Output begin = e.i32s({0}, "stack"), end = e.i32s({1}, "stack_1"), step = e.i32s({1}, "stack_2");
      rows = e.op("StridedSlice", {s.dense_shape, begin, end, step}, slice.scope(),
                  {{"begin_mask", 0},
                   {"ellipsis_mask", 0},
                   {"end_mask", 0},
                   {"new_axis_mask", 0},
                   {"shrink_axis_mask", 1}});
    }
    terms.push_back(e.op("UnsortedSegmentSum", {s.values, s.indices, rows}, cat("inputs_", i)));
  }
  return e.op("AddN", terms, scope.scope());
}

Output concat_rows(const Emit& e, std::vector<Output> parts) {
  NameScope scope(e.g, "concat");
  parts.push_back(e.i32(0, "axis"));
  return e.op("ConcatV2", parts, scope.scope());
}

}  // namespace

IndexedSlices concat_slices(const std::vector<GradValue>& parts, Loc loc) {
  const IndexedSlices& first = parts[0].slices;
  if (parts.size() == 1) return first;
  Emit e{first.values.graph(), loc};
  bool differ = std::any_of(parts.begin(), parts.end(), [&](const GradValue& p) {
    return p.slices.indices.dtype() != first.indices.dtype();
  });
  std::vector<Output> values, indices;
  for (const GradValue& p : parts) {
    values.push_back(p.slices.values);
    Output i = p.slices.indices;
    if (differ && i.dtype() != DType::kInt64) i = e.op("Cast", {i}, {}, {{"DstT", DType::kInt64}});
    indices.push_back(i);
  }
  IndexedSlices out;
  out.values = concat_rows(e, values);
  out.indices = concat_rows(e, indices);
  out.dense_shape = first.dense_shape;
  return out;
}

GradValue aggregate(Node& node, const std::vector<GradValue>& parts, AggregationMethod method, Loc loc) {
  if (parts.empty()) return {};
  if (parts.size() == 1) return parts[0];
  Graph& g = node.graph();
  auto is_slices = [](const GradValue& p) { return p.is_slices(); };
  if (std::all_of(parts.begin(), parts.end(), is_slices)) return concat_slices(parts, loc);
  if (std::any_of(parts.begin(), parts.end(), is_slices)) return add_n_mixed(g, parts, loc);
  std::vector<Output> terms;
  for (const GradValue& p : parts) terms.push_back(p.dense);
  if (method == AggregationMethod::kAddN) return add_n_by_device(g, terms, loc);
  // Both experimental methods fold from the left: the terms can be freed one by one.
  NameScope scope(g, node.name() + "_gradient_sum");
  Output sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = Emit{g, loc}.op("AddN", {sum, terms[i]});
  return sum;
}

}  // namespace sluice::passes
