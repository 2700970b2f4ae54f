#include "passes/prune.h"

#include <algorithm>
#include <unordered_set>

namespace sluice::passes {
namespace {

using graph::CollectionItem;
using graph::GraphElement;
using graph::Node;
using graph::VariableInfo;
using NodeSet = std::unordered_set<const Node*>;

// Ancestors, closed under colocation: a kept node's `_class` names must stay resolvable.
NodeSet needed(const graph::Graph& g, std::vector<Node*> roots) {
  for (;;) {
    const std::vector<Node*> found = graph::ancestors(roots);
    NodeSet set(found.begin(), found.end());
    bool grown = false;
    for (const Node* n : found) {
      const graph::AttrValue* v = n->find_attr("_class");
      const auto* groups = v ? v->get_if<std::vector<std::string>>() : nullptr;
      if (!groups) continue;
      for (const std::string& s : *groups) {
        if (!s.starts_with("loc:@")) continue;
        Node* target = g.find(std::string_view(s).substr(5));
        if (!target || set.contains(target)) continue;
        roots.push_back(target);
        grown = true;
      }
    }
    if (!grown) return set;
  }
}

bool stays(const CollectionItem& item, const NodeSet& kept) {
  if (const auto* e = std::get_if<GraphElement>(&item)) return kept.contains(e->node);
  if (const auto* v = std::get_if<std::shared_ptr<VariableInfo>>(&item))
    return *v && kept.contains((*v)->node);
  return true;
}

void forget_parts(const CollectionItem& item, const NodeSet& kept) {
  const auto* v = std::get_if<std::shared_ptr<VariableInfo>>(&item);
  if (!v) return;
  VariableInfo& info = **v;
  if (info.initializer && !kept.contains(info.initializer)) info.initializer = nullptr;
  if (info.snapshot_node && !kept.contains(info.snapshot_node))
    info.snapshot_node = nullptr, info.snapshot_index = 0;
  if (info.initial_value_node && !kept.contains(info.initial_value_node))
    info.initial_value_node = nullptr, info.initial_value_index = 0;
}

}  // namespace

int prune(graph::Graph& g, const std::vector<Node*>& keep) {
  SLUICE_REQUIRE(!g.finalized(), Code::kFailedPrecondition, "Graph is finalized and cannot be modified.");
  const NodeSet kept = needed(g, keep);
  for (const std::string& key : g.collections().keys()) {
    auto& list = g.collections().ref(key);
    std::erase_if(list, [&](const CollectionItem& item) { return !stays(item, kept); });
    for (const CollectionItem& item : list) forget_parts(item, kept);
  }
  const std::vector<Node*> order = graph::topological_order(g);
  // A loop's back edge would keep its source in use: lead the Merge elsewhere first, it goes too.
  for (Node* n : order) {
    if (kept.contains(n)) continue;
    for (int k = 0; k < n->num_inputs(); ++k)
      if (n->input(k).node->has(graph::kLoopBack) && n->has(graph::kLoopMerge))
        g.set_input(*n, k, n->input(0));
  }
  int removed = 0;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (kept.contains(*it)) continue;
    g.remove(**it);
    ++removed;
  }
  return removed;
}

}  // namespace sluice::passes
