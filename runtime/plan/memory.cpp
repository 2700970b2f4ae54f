#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "graph/support/check.h"
#include "runtime/plan/stages.h"

namespace sluice::runtime::plan {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kManyBuffers = 8192;  // beyond this, placing by size (quadratic) gives way to a sweep

size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

// Largest first, each into the tightest gap that is free over its whole life.
size_t place_by_size(std::vector<Interval>& buffers) {
  std::vector<size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed;  // by offset
  size_t total = 0;
  for (size_t k : by_size) {
    Interval& b = buffers[k];
    if (b.bytes == 0) continue;
    const size_t need = aligned(b.bytes);
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (size_t p : placed) {
      const Interval& o = buffers[p];
      if (o.last < b.first || o.first > b.last) continue;
      if (o.offset > end && o.offset - end >= need && o.offset - end < best_gap)
        best = end, best_gap = o.offset - end;
      end = std::max(end, o.offset + aligned(o.bytes));
    }
    b.offset = best == SIZE_MAX ? end : best;
    total = std::max(total, b.offset + need);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), k,
                                   [&](size_t x, size_t y) { return buffers[x].offset < buffers[y].offset; }),
                  k);
  }
  return total;
}

// In order of first use, tightest free block; for very long plans.
size_t place_by_time(std::vector<Interval>& buffers) {
  std::vector<size_t> by_first(buffers.size());
  std::iota(by_first.begin(), by_first.end(), size_t{0});
  std::stable_sort(by_first.begin(), by_first.end(),
                   [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  std::map<size_t, size_t> free_blocks;      // offset → bytes
  std::multimap<size_t, size_t> free_sizes;  // bytes → offset
  using Ending = std::pair<int, size_t>;     // last, buffer
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ending;
  size_t total = 0;
  auto erase_size = [&](size_t bytes, size_t offset) {
    auto [lo, hi] = free_sizes.equal_range(bytes);
    for (auto it = lo; it != hi; ++it)
      if (it->second == offset) {
        free_sizes.erase(it);
        return;
      }
  };
  auto give = [&](size_t offset, size_t bytes) {
    auto next = free_blocks.lower_bound(offset);
    if (next != free_blocks.end() && next->first == offset + bytes) {
      bytes += next->second;
      erase_size(next->second, next->first);
      next = free_blocks.erase(next);
    }
    if (next != free_blocks.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        erase_size(before->second, before->first);
        before->second += bytes;
        free_sizes.emplace(before->second, before->first);
        return;
      }
    }
    free_blocks.emplace(offset, bytes);
    free_sizes.emplace(bytes, offset);
  };
  for (size_t k : by_first) {
    Interval& b = buffers[k];
    if (b.bytes == 0) continue;
    while (!ending.empty() && ending.top().first < b.first) {
      const Interval& o = buffers[ending.top().second];
      give(o.offset, aligned(o.bytes));
      ending.pop();
    }
    const size_t need = aligned(b.bytes);
    const auto fit = free_sizes.lower_bound(need);
    if (fit != free_sizes.end()) {
      const size_t offset = fit->second, bytes = fit->first;
      free_sizes.erase(fit);
      free_blocks.erase(offset);
      b.offset = offset;
      if (bytes > need) give(offset + need, bytes - need);
    } else {
      b.offset = total;
      total += need;
    }
    ending.emplace(b.last, k);
  }
  return total;
}

}  // namespace

size_t place(std::vector<Interval>& buffers) {
  return buffers.size() > kManyBuffers ? place_by_time(buffers) : place_by_size(buffers);
}

ValueId buffer_root(const PlanGraph& g, ValueId v) {
  while (g.value(v).buffer_of >= 0) v = g.value(v).buffer_of;
  return v;
}

MemoryMap plan_memory(PlanGraph& g, const std::vector<OpId>& order, const BuildOptions& options) {
  MemoryMap map;
  map.scratch.assign(g.ops.size(), 0);
  const int end = static_cast<int>(order.size());
  for (PlanValue& v : g.values) v.buffer_of = -1, v.first = 0, v.last = -1;

  // Views share their source's bytes (dynamic ones share an Array at run time instead).
  for (OpId id : order) {
    const PlanOp& o = g.op(id);
    if (o.kind != OpKind::kView) continue;
    const ValueId root = buffer_root(g, o.inputs[0]);
    if (g.value(root).storage == Storage::kDynamic) continue;
    g.value(o.outputs[0]).buffer_of = root;
    g.value(o.outputs[0]).storage = g.value(root).storage;
  }
  for (int k = 0; k < end; ++k) {
    const PlanOp& o = g.op(order[static_cast<size_t>(k)]);
    for (ValueId v : o.outputs) {
      PlanValue& root = g.value(buffer_root(g, v));
      if (o.kind != OpKind::kView) root.first = k;
      root.last = std::max(root.last, k);
    }
    for (ValueId v : o.inputs) {
      PlanValue& root = g.value(buffer_root(g, v));
      root.last = std::max(root.last, k);
    }
  }
  for (const auto* list : {&g.fetches, &g.boundary})
    for (ValueId v : *list)
      if (v >= 0) g.value(buffer_root(g, v)).last = end;

  // In place: the last reader of a buffer writes its result there.
  const auto& off = options.disabled_passes;
  if (!options.reference && std::find(off.begin(), off.end(), "in_place") == off.end()) {
    for (int k = 0; k < end; ++k) {
      const PlanOp& o = g.op(order[static_cast<size_t>(k)]);
      if (o.kind != OpKind::kKernel || !o.kernel) continue;
      std::vector<ValueId> taken;
      for (auto [i, j] : o.kernel->may_share) {
        if (static_cast<size_t>(i) >= o.inputs.size() || static_cast<size_t>(j) >= o.outputs.size()) continue;
        const ValueId in = o.inputs[static_cast<size_t>(i)], out = o.outputs[static_cast<size_t>(j)];
        const ValueId root = buffer_root(g, in);
        PlanValue& r = g.value(root);
        PlanValue& w = g.value(out);
        if (r.storage != Storage::kArena || w.storage != Storage::kArena || w.buffer_of >= 0) continue;
        if (r.last != k || r.spec.bytes() != w.spec.bytes() || !(r.spec.layout == w.spec.layout)) continue;
        if (std::find(taken.begin(), taken.end(), root) != taken.end()) continue;
        // A second reading of the same bytes by this op might come after the first write.
        const auto uses = std::count_if(o.inputs.begin(), o.inputs.end(),
                                        [&](ValueId v) { return buffer_root(g, v) == root; });
        if (uses != 1) continue;
        w.buffer_of = root;
        r.last = w.last;
        taken.push_back(root);
      }
    }
  }

  std::vector<Interval> intervals;
  std::vector<ValueId> whose;
  for (size_t v = 0; v < g.values.size(); ++v) {
    const PlanValue& value = g.values[v];
    if (value.storage != Storage::kArena || value.buffer_of >= 0 || value.last < 0) continue;
    intervals.push_back({value.spec.bytes(), value.first, value.last, 0});
    whose.push_back(static_cast<ValueId>(v));
  }
  const size_t num_values = intervals.size();
  std::vector<OpId> scratch_of;
  for (int k = 0; k < end; ++k) {
    const PlanOp& o = g.op(order[static_cast<size_t>(k)]);
    if (!o.kernel || o.kernel->scratch_bytes == 0) continue;
    intervals.push_back({o.kernel->scratch_bytes, k, k, 0});
    scratch_of.push_back(order[static_cast<size_t>(k)]);
  }
  map.arena_bytes = place(intervals);
  for (size_t i = 0; i < num_values; ++i) g.value(whose[i]).offset = intervals[i].offset;
  for (size_t i = num_values; i < intervals.size(); ++i)
    map.scratch[static_cast<size_t>(scratch_of[i - num_values])] = intervals[i].offset;

  std::vector<int64_t> change(static_cast<size_t>(end) + 2, 0);
  for (const Interval& b : intervals) {
    change[static_cast<size_t>(b.first)] += static_cast<int64_t>(aligned(b.bytes));
    change[static_cast<size_t>(b.last) + 1] -= static_cast<int64_t>(aligned(b.bytes));
  }
  int64_t live = 0;
  for (int64_t c : change)
    live += c, map.live_peak = std::max(map.live_peak, static_cast<size_t>(std::max<int64_t>(live, 0)));
  return map;
}

}  // namespace sluice::runtime::plan
