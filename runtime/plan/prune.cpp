#include "runtime/plan/prune.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "graph/support/check.h"
#include "graph/support/hash.h"

namespace sluice::runtime::plan {

using graph::Node;
using graph::Output;

namespace {

// A control edge from a fed placeholder moves to the feed (§8.1), which is there from the start.
bool control_is_fed(Node* control, const FedSet& fed) {
  return control->has(graph::kSource) && control->num_outputs() > 0 && fed.count(control->output(0)) > 0;
}

uint64_t hash_attr(const graph::AttrValue& a) {
  if (const auto* l = a.get_if<graph::Literal>())
    return hash_combine(reinterpret_cast<uintptr_t>(l->data()), static_cast<uint64_t>(l->elements()));
  return hash_string(a.str());
}

}  // namespace

std::vector<Node*> needed_nodes(const graph::Graph& graph, const std::vector<Output>& fetches,
                                const std::vector<Node*>& targets, const FedSet& fed) {
  std::vector<char> seen(static_cast<size_t>(graph.last_id()) + 2, 0);
  std::vector<Node*> nodes, stack;
  auto need = [&](Node* n) {
    char& s = seen[static_cast<size_t>(n->id())];
    if (s) return;
    s = 1;
    nodes.push_back(n);
    stack.push_back(n);
  };
  for (const Output& o : fetches)
    if (!fed.count(o)) need(o.node);
  for (Node* n : targets) need(n);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Output& in : n->inputs()) {
      SLUICE_REQUIRE(in.node, Code::kInvalidArgument, "Node '", n->name(),
                     "' has an input that was never set");
      if (!fed.count(in)) need(in.node);
    }
    for (Node* c : n->control_inputs())
      if (!control_is_fed(c, fed)) need(c);
  }
  return nodes;
}

std::vector<Node*> lowering_order(const std::vector<Node*>& nodes, const FedSet& fed) {
  std::unordered_map<const Node*, int> pending;
  pending.reserve(nodes.size());
  for (Node* n : nodes) pending.emplace(n, 0);
  std::unordered_map<const Node*, std::vector<Node*>> succs;
  succs.reserve(nodes.size());
  auto edge = [&](Node* from, Node* to) {
    if (!pending.count(from)) return;
    succs[from].push_back(to);
    ++pending[to];
  };
  for (Node* n : nodes) {
    for (const Output& in : n->inputs())
      if (!fed.count(in)) edge(in.node, n);
    for (Node* c : n->control_inputs())
      if (!control_is_fed(c, fed)) edge(c, n);
  }
  struct Key {
    int writer, id;
    Node* node;
    bool operator>(const Key& o) const { return writer != o.writer ? writer > o.writer : id > o.id; }
  };
  auto key = [](Node* n) { return Key{n->has(graph::kWritesVariable) ? 1 : 0, n->id(), n}; };
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  for (Node* n : nodes)
    if (pending[n] == 0) ready.push(key(n));
  std::vector<Node*> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    Node* n = ready.top().node;
    ready.pop();
    order.push_back(n);
    if (auto it = succs.find(n); it != succs.end())
      for (Node* s : it->second)
        if (--pending[s] == 0) ready.push(key(s));
  }
  if (order.size() != nodes.size())
    for (Node* n : nodes)
      if (pending[n] > 0)
        throw_error(Code::kUnimplemented,
                    cat("Node '", n->name(), "' (op: '", n->op(),
                        "') lies on a loop or behind one; loops cannot be run yet"),
                    n->name(), n->loc());
  return order;
}

uint64_t fingerprint(const std::vector<Node*>& nodes) {
  uint64_t h = nodes.size();
  auto mix = [&](const void* p, int i) {
    h = hash_combine(h, reinterpret_cast<uintptr_t>(p) * 31 + static_cast<uint64_t>(i));
  };
  for (const Node* n : nodes) {
    mix(n, n->num_outputs());
    for (const Output& in : n->inputs()) mix(in.node, in.index);
    for (const Node* c : n->control_inputs()) mix(c, -1);
    h = hash_string(n->device(), h);
    for (const auto& [name, value] : n->attrs()) h = hash_combine(hash_string(name, h), hash_attr(value));
  }
  return h;
}

}  // namespace sluice::runtime::plan
