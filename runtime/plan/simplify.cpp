// Passes that only take things away: identities, equal ops, ops nobody needs.

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "graph/support/hash.h"
#include "runtime/plan/pipeline.h"

namespace sluice::runtime::plan {
namespace {

std::vector<ValueId> identity_map(const PlanGraph& g) {
  std::vector<ValueId> to(g.values.size());
  std::iota(to.begin(), to.end(), 0);
  return to;
}

// Attributes that change what an op computes: those starting with '_' never do.
bool same_attrs(const graph::AttrMap& a, const graph::AttrMap& b) {
  auto skip = [](auto it, auto end) {
    while (it != end && !it->first.empty() && it->first[0] == '_') ++it;
    return it;
  };
  auto i = skip(a.begin(), a.end()), j = skip(b.begin(), b.end());
  while (i != a.end() && j != b.end()) {
    if (i->first != j->first || !(i->second == j->second)) return false;
    i = skip(std::next(i), a.end()), j = skip(std::next(j), b.end());
  }
  return i == a.end() && j == b.end();
}

bool mergeable(const PlanOp& o) {
  return !o.keep && !o.has(graph::kStateful) && !o.region && o.after.empty() && o.node &&
         (o.kind == OpKind::kKernel || o.kind == OpKind::kView) && !o.outputs.empty();
}

bool equal_ops(const PlanGraph& g, const PlanOp& a, const PlanOp& b) {
  if (a.op != b.op || a.inputs != b.inputs || a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (!(g.value(a.outputs[i]).spec == g.value(b.outputs[i]).spec)) return false;
  return same_attrs(a.attrs, b.attrs) && same_attrs(a.node->attrs(), b.node->attrs());
}

constexpr int64_t kSmallConstant = 64;

}  // namespace

void remove_views(PlanGraph& g, const BuildOptions&) {
  std::vector<ValueId> to = identity_map(g);
  bool changed = false;
  for (OpId id : g.live()) {
    PlanOp& o = g.op(id);
    if (o.kind != OpKind::kView || !o.after.empty()) continue;
    const ValueId in = to[static_cast<size_t>(o.inputs[0])];
    if (!(g.value(in).spec == g.value(o.outputs[0]).spec)) continue;
    to[static_cast<size_t>(o.outputs[0])] = in;
    o.inputs[0] = in;
    g.remove(id);
    changed = true;
  }
  if (changed) g.rename(to);
}

void merge_equal(PlanGraph& g, const BuildOptions&) {
  std::vector<ValueId> to = identity_map(g);
  std::unordered_multimap<uint64_t, ValueId> constants;
  for (size_t k = 0; k < g.values.size(); ++k) {
    const PlanValue& v = g.values[k];
    if (v.storage != Storage::kConstant || v.producer >= 0 || !v.literal ||
        v.literal->elements() > kSmallConstant)
      continue;
    const uint64_t h = hash_string(
        v.spec.str(), v.literal->size_bytes() ? hash_bytes(v.literal->data(), v.literal->size_bytes()) : 1);
    auto [first, last] = constants.equal_range(h);
    const auto same = std::find_if(first, last, [&](const auto& e) {
      const PlanValue& w = g.value(e.second);
      return w.spec == v.spec && *w.literal == *v.literal;
    });
    if (same != last)
      to[k] = same->second;
    else
      constants.emplace(h, static_cast<ValueId>(k));
  }
  std::unordered_multimap<uint64_t, OpId> seen;
  for (OpId id : g.live()) {
    PlanOp& o = g.op(id);
    for (ValueId& v : o.inputs) v = to[static_cast<size_t>(v)];
    if (!mergeable(o)) continue;
    uint64_t h = hash_string(o.op);
    for (ValueId v : o.inputs) h = hash_combine(h, static_cast<uint64_t>(v));
    auto [first, last] = seen.equal_range(h);
    const auto same =
        std::find_if(first, last, [&](const auto& e) { return equal_ops(g, o, g.op(e.second)); });
    if (same == last) {
      seen.emplace(h, id);
      continue;
    }
    const OpId first_op = same->second;
    for (size_t i = 0; i < o.outputs.size(); ++i)
      to[static_cast<size_t>(o.outputs[i])] = g.op(first_op).outputs[i];
    std::vector<const graph::Node*>& nodes = g.op(first_op).nodes;
    nodes.insert(nodes.end(), o.nodes.begin(), o.nodes.end());
    g.remove(id, first_op);
  }
  g.rename(to);
}

void drop_dead(PlanGraph& g, const BuildOptions&) {
  std::vector<char> needed(g.ops.size(), 0);
  std::vector<OpId> stack;
  auto need = [&](OpId id) {
    if (id >= 0 && !needed[static_cast<size_t>(id)]) needed[static_cast<size_t>(id)] = 1, stack.push_back(id);
  };
  for (size_t k = 0; k < g.ops.size(); ++k)
    if (!g.ops[k].removed && g.ops[k].keep) need(static_cast<OpId>(k));
  for (const auto* list : {&g.fetches, &g.boundary})
    for (ValueId v : *list)
      if (v >= 0) need(g.value(v).producer);
  while (!stack.empty()) {
    const OpId id = stack.back();
    stack.pop_back();
    for (ValueId v : g.op(id).inputs) need(g.value(v).producer);
  }
  for (size_t k = 0; k < g.ops.size(); ++k)
    if (!g.ops[k].removed && !needed[k]) g.remove(static_cast<OpId>(k));
}

}  // namespace sluice::runtime::plan
