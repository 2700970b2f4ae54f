#include <algorithm>
#include <queue>
#include <unordered_map>

#include "graph/support/check.h"
#include "runtime/plan/stages.h"

namespace sluice::runtime::plan {
namespace {

// Views read their source for as long as somebody reads them: by ValueId, the value whose bytes it is.
std::vector<ValueId> view_roots(const PlanGraph& g, const std::vector<OpId>& order) {
  std::vector<ValueId> root(g.values.size());
  for (size_t v = 0; v < root.size(); ++v) root[v] = static_cast<ValueId>(v);
  for (OpId id : order)
    if (g.op(id).kind == OpKind::kView)
      root[static_cast<size_t>(g.op(id).outputs[0])] = root[static_cast<size_t>(g.op(id).inputs[0])];
  return root;
}

int64_t bytes_of(const PlanGraph& g, ValueId v, const std::vector<ValueId>& root) {
  const PlanValue& value = g.value(v);
  return value.storage == Storage::kArena && root[static_cast<size_t>(v)] == v
             ? static_cast<int64_t>(value.spec.bytes())
             : 0;
}

// Peak of live arena bytes of an order, each value counted from its producer to its last reader.
int64_t peak_of(const PlanGraph& g, const std::vector<OpId>& order, const std::vector<ValueId>& root) {
  std::vector<int> first(g.values.size(), -1), last(g.values.size(), -1);
  const int n = static_cast<int>(order.size());
  for (int k = 0; k < n; ++k) {
    const PlanOp& o = g.op(order[static_cast<size_t>(k)]);
    for (ValueId v : o.outputs) first[static_cast<size_t>(v)] = last[static_cast<size_t>(v)] = k;
    for (ValueId v : o.inputs) last[static_cast<size_t>(root[static_cast<size_t>(v)])] = k;
  }
  for (ValueId v : g.fetches)
    if (v >= 0) last[static_cast<size_t>(root[static_cast<size_t>(v)])] = n;
  std::vector<int64_t> change(order.size() + 2, 0);
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (first[v] < 0) continue;
    const int64_t bytes = bytes_of(g, static_cast<ValueId>(v), root);
    change[static_cast<size_t>(first[v])] += bytes;
    change[static_cast<size_t>(last[v]) + 1] -= bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t c : change) live += c, peak = std::max(peak, live);
  return peak;
}

constexpr size_t kLookAt = 64;  // ready ops weighed against each other

// Always runs the ready op that frees most (or takes least), ties by the former order.
std::vector<OpId> greedy(const PlanGraph& g, const std::vector<OpId>& order,
                         const std::vector<ValueId>& root) {
  const auto preds = g.predecessors();
  std::vector<std::vector<OpId>> succs(g.ops.size());
  std::vector<int> pending(g.ops.size(), 0), position(g.ops.size(), -1);
  std::vector<int> left(g.values.size(), 0);  // readings still to come, by root
  for (size_t k = 0; k < order.size(); ++k) position[static_cast<size_t>(order[k])] = static_cast<int>(k);
  for (ValueId v : g.fetches)
    if (v >= 0) ++left[static_cast<size_t>(root[static_cast<size_t>(v)])];
  for (ValueId v : g.boundary) ++left[static_cast<size_t>(root[static_cast<size_t>(v)])];
  std::vector<std::pair<int, OpId>> ready;  // sorted by position
  for (OpId id : order) {
    const auto& p = preds[static_cast<size_t>(id)];
    pending[static_cast<size_t>(id)] = static_cast<int>(p.size());
    for (OpId q : p) succs[static_cast<size_t>(q)].push_back(id);
    if (p.empty()) ready.emplace_back(position[static_cast<size_t>(id)], id);
    for (ValueId v : g.op(id).inputs) ++left[static_cast<size_t>(root[static_cast<size_t>(v)])];
  }
  auto cost = [&](OpId id) {
    const PlanOp& o = g.op(id);
    int64_t c = 0;
    for (ValueId v : o.outputs) c += bytes_of(g, v, root);
    for (size_t i = 0; i < o.inputs.size(); ++i) {
      const ValueId r = root[static_cast<size_t>(o.inputs[i])];
      int uses = 0;
      bool first = true;
      for (size_t j = 0; j < o.inputs.size(); ++j) {
        if (root[static_cast<size_t>(o.inputs[j])] != r) continue;
        ++uses;
        if (j < i) first = false;
      }
      if (first && left[static_cast<size_t>(r)] == uses) c -= bytes_of(g, r, root);
    }
    return c;
  };
  std::vector<OpId> out;
  out.reserve(order.size());
  while (!ready.empty()) {
    size_t best = 0;
    int64_t best_cost = cost(ready[0].second);
    for (size_t k = 1; k < std::min(ready.size(), kLookAt); ++k) {
      // A barrier or view costs nothing and lets others go.
      const int64_t c = cost(ready[k].second);
      if (c < best_cost) best = k, best_cost = c;
    }
    const OpId id = ready[best].second;
    ready.erase(ready.begin() + static_cast<long>(best));
    out.push_back(id);
    for (ValueId v : g.op(id).inputs) --left[static_cast<size_t>(root[static_cast<size_t>(v)])];
    for (OpId s : succs[static_cast<size_t>(id)])
      if (--pending[static_cast<size_t>(s)] == 0) {
        const std::pair<int, OpId> entry{position[static_cast<size_t>(s)], s};
        ready.insert(std::lower_bound(ready.begin(), ready.end(), entry), entry);
      }
  }
  SLUICE_CHECK(out.size() == order.size(), "the schedule lost ops");
  return out;
}

}  // namespace

void order_writes(PlanGraph& g) {
  const std::vector<OpId> order = g.live();
  std::vector<int> position(g.ops.size(), -1);
  for (size_t k = 0; k < order.size(); ++k) position[static_cast<size_t>(order[k])] = static_cast<int>(k);
  std::unordered_map<const Variable*, std::vector<OpId>> writers;
  for (OpId id : order)
    if (g.op(id).has(graph::kWritesVariable))
      for (ValueId v : g.op(id).inputs)
        if (g.value(v).storage == Storage::kHandle) writers[g.value(v).variable.get()].push_back(id);
  if (writers.empty()) return;
  const auto readers = g.readers();
  for (OpId id : order) {
    if (g.op(id).kind != OpKind::kRead) continue;
    const auto it = writers.find(g.value(g.op(id).inputs[0]).variable.get());
    if (it == writers.end()) continue;
    // The first write after this read; later ones come after it anyway.
    OpId write = -1;
    for (OpId w : it->second)
      if (position[static_cast<size_t>(w)] > position[static_cast<size_t>(id)]) {
        write = w;
        break;
      }
    if (write < 0) continue;
    std::vector<ValueId> held{g.op(id).outputs[0]};
    for (size_t k = 0; k < held.size(); ++k)
      for (OpId r : readers[static_cast<size_t>(held[k])]) {
        if (g.op(r).kind == OpKind::kView) held.push_back(g.op(r).outputs[0]);
        if (r != write && position[static_cast<size_t>(r)] < position[static_cast<size_t>(write)])
          g.op(write).after.push_back(r);
      }
  }
  // Handles of several variables in one op (slots) repeat edges; keep the lists short.
  for (auto& [variable, list] : writers)
    for (OpId w : list) {
      std::vector<OpId>& after = g.op(w).after;
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
    }
}

std::vector<OpId> schedule(const PlanGraph& g, const BuildOptions& options) {
  std::vector<OpId> order = g.live();
  const auto& off = options.disabled_passes;
  if (options.reference || std::find(off.begin(), off.end(), "schedule") != off.end()) return order;
  const std::vector<ValueId> root = view_roots(g, order);
  std::vector<OpId> other = greedy(g, order, root);
  return peak_of(g, other, root) < peak_of(g, order, root) ? other : order;
}

}  // namespace sluice::runtime::plan
