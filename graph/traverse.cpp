#include <algorithm>
#include <queue>
#include <unordered_set>

#include "graph/graph.h"
#include "graph/support/check.h"

namespace sluice::graph {
namespace {

// A NextIteration feeds a Merge from behind: the one edge of a graph that may point backwards.
bool is_back_edge(const Node& from, const Node& to) { return from.has(kLoopBack) && to.has(kLoopMerge); }

}  // namespace

std::vector<Node*> topological_order(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  int max_id = 0;
  for (const Node* n : nodes) max_id = std::max(max_id, n->id());
  std::vector<int> pending(static_cast<size_t>(max_id) + 1);
  auto later = [](const Node* a, const Node* b) { return a->id() > b->id(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (Node* n : nodes) {
    int count = static_cast<int>(n->control_inputs().size());
    for (const Output& in : n->inputs()) count += in && !is_back_edge(*in.node, *n);
    pending[static_cast<size_t>(n->id())] = count;
    if (count == 0) ready.push(n);
  }
  std::vector<Node*> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    Node* n = ready.top();
    ready.pop();
    order.push_back(n);
    auto release = [&](Node* user) {
      if (--pending[static_cast<size_t>(user->id())] == 0) ready.push(user);
    };
    for (const Use& u : n->uses())
      if (!is_back_edge(*n, *u.node)) release(u.node);
    for (Node* u : n->control_uses()) release(u);
  }
  if (order.size() != nodes.size()) {
    for (Node* n : nodes)
      if (pending[static_cast<size_t>(n->id())] > 0)
        throw_error(Code::kInvalidArgument, cat("the graph has a cycle through node '", n->name(), "'"),
                    n->name(), n->loc());
  }
  return order;
}

std::vector<Node*> ancestors(std::span<Node* const> roots, std::span<const Output> feeds) {
  const std::unordered_set<Output, OutputHash> fed(feeds.begin(), feeds.end());
  std::unordered_set<Node*> seen;
  std::vector<Node*> stack, out;
  auto visit = [&](Node* n) {
    if (n && seen.insert(n).second) stack.push_back(n);
  };
  for (Node* r : roots) visit(r);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    out.push_back(n);
    for (const Output& in : n->inputs())
      if (in && !fed.contains(in)) visit(in.node);
    for (Node* c : n->control_inputs()) visit(c);
  }
  std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return out;
}

}  // namespace sluice::graph
