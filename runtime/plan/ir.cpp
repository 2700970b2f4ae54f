#include "runtime/plan/ir.h"

#include <algorithm>
#include <queue>

#include "graph/support/check.h"

namespace sluice::runtime::plan {

Array ConstantPool::get(const graph::Literal& literal) {
  constexpr size_t kWorthSharing = 4096;
  if (literal.size_bytes() < kWorthSharing) return Array::from_literal(literal);
  std::lock_guard lock(mutex_);
  auto& [kept, array] = arrays_[literal.data()];
  if (!array) kept = literal, array = Array::from_literal(literal);
  return array.reshaped(literal.dims());
}

ValueId PlanGraph::add_value(PlanValue v) {
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId PlanGraph::add_value(ValueSpec spec, std::string name) {
  PlanValue v;
  v.spec = std::move(spec);
  v.name = std::move(name);
  return add_value(std::move(v));
}

OpId PlanGraph::add(PlanOp op) {
  const OpId id = static_cast<OpId>(ops.size());
  for (ValueId v : op.outputs)
    if (value(v).storage != Storage::kHandle) value(v).producer = id;
  if (op.nodes.empty() && op.node) op.nodes.push_back(op.node);
  ops.push_back(std::move(op));
  return id;
}

void PlanGraph::remove(OpId id, OpId by) {
  PlanOp& gone = op(id);
  gone.removed = true;
  gone.replaced_by = by;
  if (by >= 0) {
    std::vector<OpId>& after = op(by).after;
    after.insert(after.end(), gone.after.begin(), gone.after.end());
  }
}

void PlanGraph::replace_uses(ValueId from, ValueId to) {
  for (PlanOp& o : ops)
    if (!o.removed) std::replace(o.inputs.begin(), o.inputs.end(), from, to);
  std::replace(fetches.begin(), fetches.end(), from, to);
  std::replace(boundary.begin(), boundary.end(), from, to);
}

void PlanGraph::rename(const std::vector<ValueId>& to) {
  auto apply = [&](std::vector<ValueId>& ids) {
    for (ValueId& v : ids)
      if (v >= 0) v = to[static_cast<size_t>(v)];
  };
  for (PlanOp& o : ops)
    if (!o.removed) apply(o.inputs);
  apply(fetches);
  apply(boundary);
}

std::vector<std::vector<OpId>> PlanGraph::predecessors() const {
  const size_t n = ops.size();
  std::vector<std::vector<OpId>> preds(n);
  std::vector<char> state(n, 0);  // 0 new, 1 open, 2 done
  auto direct = [&](OpId id) {
    const PlanOp& o = op(id);
    std::vector<OpId> d;
    if (o.removed && o.replaced_by >= 0) {
      d.push_back(o.replaced_by);
      return d;
    }
    for (ValueId v : o.inputs)
      if (value(v).producer >= 0) d.push_back(value(v).producer);
    d.insert(d.end(), o.after.begin(), o.after.end());
    return d;
  };
  // Removed ops are resolved to the live ones before them; depth first without recursion, since a chain of
  // removed ops may be as long as the graph.
  std::vector<OpId> stack;
  for (size_t start = 0; start < n; ++start) {
    if (state[start] == 2) continue;
    stack.push_back(static_cast<OpId>(start));
    while (!stack.empty()) {
      const OpId id = stack.back();
      const auto k = static_cast<size_t>(id);
      if (state[k] == 2) {
        stack.pop_back();
        continue;
      }
      const std::vector<OpId> d = direct(id);
      if (state[k] == 0) {
        state[k] = 1;
        bool wait = false;
        for (OpId p : d)
          if (op(p).removed && state[static_cast<size_t>(p)] == 0) stack.push_back(p), wait = true;
        if (wait) continue;
      }
      std::vector<OpId>& out = preds[k];
      for (OpId p : d) {
        if (!op(p).removed)
          out.push_back(p);
        else
          out.insert(out.end(), preds[static_cast<size_t>(p)].begin(), preds[static_cast<size_t>(p)].end());
      }
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
      out.erase(std::remove(out.begin(), out.end(), id), out.end());
      state[k] = 2;
      stack.pop_back();
    }
  }
  for (size_t k = 0; k < n; ++k)
    if (ops[k].removed) preds[k].clear();
  return preds;
}

std::vector<OpId> PlanGraph::live() const {
  const std::vector<std::vector<OpId>> preds = predecessors();
  const size_t n = ops.size();
  std::vector<int> pending(n, 0);
  std::vector<std::vector<OpId>> succs(n);
  size_t count = 0;
  using Key = std::pair<double, OpId>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  for (size_t k = 0; k < n; ++k) {
    if (ops[k].removed) continue;
    ++count;
    pending[k] = static_cast<int>(preds[k].size());
    for (OpId p : preds[k]) succs[static_cast<size_t>(p)].push_back(static_cast<OpId>(k));
    if (pending[k] == 0) ready.emplace(ops[k].order, static_cast<OpId>(k));
  }
  std::vector<OpId> order;
  order.reserve(count);
  while (!ready.empty()) {
    const OpId id = ready.top().second;
    ready.pop();
    order.push_back(id);
    for (OpId s : succs[static_cast<size_t>(id)])
      if (--pending[static_cast<size_t>(s)] == 0) ready.emplace(op(s).order, s);
  }
  if (order.size() != count)
    for (size_t k = 0; k < n; ++k)
      SLUICE_CHECK(ops[k].removed || pending[k] == 0, "the plan has a cycle through ", ops[k].op, " '",
                   ops[k].node ? ops[k].node->name() : "", "'");
  return order;
}

std::vector<std::vector<OpId>> PlanGraph::readers() const {
  std::vector<std::vector<OpId>> readers(values.size());
  for (OpId id : live())
    for (ValueId v : op(id).inputs) readers[static_cast<size_t>(v)].push_back(id);
  return readers;
}

bool PlanGraph::is_output(ValueId v) const {
  return std::find(fetches.begin(), fetches.end(), v) != fetches.end() ||
         std::find(boundary.begin(), boundary.end(), v) != boundary.end();
}

void PlanGraph::check() const {
  auto valid = [&](ValueId v) { return v >= 0 && static_cast<size_t>(v) < values.size(); };
  for (size_t k = 0; k < ops.size(); ++k) {
    const PlanOp& o = ops[k];
    if (o.removed) continue;
    for (ValueId v : o.inputs) {
      SLUICE_CHECK(valid(v), "op ", o.op, " reads value ", v);
      const OpId p = value(v).producer;
      SLUICE_CHECK(p < 0 || !op(p).removed, "op ", o.op, " '", o.node ? o.node->name() : "", "' reads ",
                   value(v).name, ", whose producer was removed");
    }
    for (ValueId v : o.outputs)
      SLUICE_CHECK(
          valid(v) && (value(v).storage == Storage::kHandle || value(v).producer == static_cast<OpId>(k)),
          "output ", v, " of op ", o.op, " has another producer");
  }
  for (const auto* list : {&fetches, &boundary})
    for (ValueId v : *list) {
      if (v < 0) continue;
      const OpId p = value(v).producer;
      SLUICE_CHECK(p < 0 || !op(p).removed, "fetched value ", value(v).name, " has no producer any more");
    }
}

std::string PlanGraph::str() const {
  std::string s;
  auto list = [&](const std::vector<ValueId>& ids) {
    std::string t;
    for (ValueId v : ids) {
      const PlanValue& x = value(v);
      t += cat(t.empty() ? "" : ", ", "%", v, ":",
               x.known_dims ? x.spec.str() : cat(x.spec.dtype, "[dynamic]"));
    }
    return t;
  };
  for (OpId id : live()) {
    const PlanOp& o = op(id);
    s += cat(list(o.outputs), o.outputs.empty() ? "" : " = ", o.op, "(", list(o.inputs), ")");
    if (o.node) s += cat("  ", o.node->name());
    if (o.nodes.size() > 1) s += cat(" (", o.nodes.size(), " nodes)");
    if (!o.candidate.empty()) s += cat("  [", o.candidate, "]");
    s += '\n';
  }
  s += cat("fetch ", list(fetches), '\n');
  return s;
}

std::string value_name(const graph::Output& o) { return o.name(); }

}  // namespace sluice::runtime::plan
