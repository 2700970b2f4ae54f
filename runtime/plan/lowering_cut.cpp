#include "runtime/plan/lowering.h"

#include "runtime/plan/evaluate.h"

namespace sluice::runtime::plan {

// True when the run must know more before this node's shape is fixed: more feeds by value, or a cut.
bool Lowering::resolve_unknown(Node* n, const graph::InferContext& c) {
  if (c.unknown_values_asked().empty()) return false;
  std::vector<int> feeds;
  bool from_feeds = true;
  for (int i : c.unknown_values_asked()) from_feeds &= feeds_behind(n->input(i), feeds);
  if (from_feeds && !feeds.empty()) {
    result_.by_value.insert(result_.by_value.end(), feeds.begin(), feeds.end());
  } else {
    // Known already and still not enough: the rule itself cannot tell.
    for (int i : c.unknown_values_asked())
      if (value_of(n->input(i)) >= 0 && g().value(value_of(n->input(i))).literal) return false;
    for (int i : c.unknown_values_asked()) wanted_by_value_.insert(n->input(i));
  }
  defer(n);
  return true;
}

// Collects the feeds that alone (with constants) decide a value; false when something else does.
bool Lowering::feeds_behind(const Output& start, std::vector<int>& feeds) {
  constexpr size_t kMaxNodes = 10'000;
  std::vector<Output> stack{start};
  std::unordered_set<Output, graph::OutputHash> seen{start};
  while (!stack.empty()) {
    const Output o = stack.back();
    stack.pop_back();
    if (const auto it = given_.find(o); it != given_.end()) {
      const Given& given = request_.given[static_cast<size_t>(it->second)];
      if (given.value) continue;
      if (given.feed < 0 || given.spec.elements() > kEvaluateElements || given.spec.dtype == DType::kString)
        return false;
      feeds.push_back(it->second);
      continue;
    }
    Node* n = o.node;
    const auto& outs = outputs_[static_cast<size_t>(n->id())];
    if (static_cast<size_t>(o.index) < outs.size() && g().value(outs[static_cast<size_t>(o.index)]).literal)
      continue;
    if (n->has(graph::kStateful) || n->has(graph::kVariable) || n->has(graph::kReadsVariable) ||
        n->num_inputs() == 0 || seen.size() > kMaxNodes)
      return false;
    for (const Output& in : n->inputs())
      if (seen.insert(in).second) stack.push_back(in);
  }
  return true;
}

// True when the node needs something that only a later part of the run makes.
bool Lowering::must_wait(Node* n) {
  auto late = [&](Node* m) { return deferred_[static_cast<size_t>(m->id())] != 0; };
  for (Node* c : n->control_inputs())
    if (late(c)) return true;
  for (const Output& in : n->inputs()) {
    if (given_.count(in)) continue;
    if (late(in.node)) return true;
    const ValueId v = value_of(in);
    if (v < 0) continue;
    const PlanValue& value = g().value(v);
    if (is_handle(value)) {
      const Variable* var = value.variable.get();
      const bool writes = n->has(graph::kWritesVariable);
      if (waiting_writes_.count(var) || (writes && waiting_reads_.count(var))) return true;
      // Assigned a value of unknown shape in this part: its readers come later.
      if (!value.known_dims && !n->has(graph::kAllowsUninitialized) && state(v).last_write >= 0) return true;
    } else if (!value.known_dims) {
      return true;
    }
  }
  return false;
}

void Lowering::defer(Node* n) {
  deferred_[static_cast<size_t>(n->id())] = 1;
  waiting_.push_back(n);
  for (const Output& in : n->inputs()) {
    if (!given_.count(in) && deferred_[static_cast<size_t>(in.node->id())]) continue;
    const ValueId v = value_of(in);
    if (v < 0 || !is_handle(g().value(v))) continue;
    (n->has(graph::kWritesVariable) ? waiting_writes_ : waiting_reads_).insert(g().value(v).variable.get());
  }
}

void Lowering::make_cut() {
  auto cut = std::make_unique<Cut>();
  std::unordered_set<Output, graph::OutputHash> seen;
  auto need = [&](const Output& in) {
    if (!seen.insert(in).second) return;
    if (const auto it = given_.find(in); it != given_.end()) {
      const Given& given = request_.given[static_cast<size_t>(it->second)];
      if (given.feed >= 0)
        cut->feeds.push_back(it->second);
      else
        cut->given.push_back(given);
      return;
    }
    if (deferred_[static_cast<size_t>(in.node->id())]) return;
    const ValueId v = value_of(in);
    const PlanValue& value = g().value(v);
    if (is_handle(value)) {
      cut->given.push_back({in, value.spec, -1, std::nullopt, value.variable});
    } else if (value.literal) {
      cut->given.push_back({in, value.spec, -1, value.literal, nullptr});
    } else {
      cut->boundary.push_back(in);
      cut->by_value.push_back(wanted_by_value_.count(in) ? 1 : 0);
      g().boundary.push_back(v);
    }
  };
  for (Node* n : waiting_)
    for (const Output& in : n->inputs()) need(in);
  cut->nodes = std::move(waiting_);
  result_.cut = std::move(cut);
}

}  // namespace sluice::runtime::plan
