#include "dsl/train/apply_if.h"

#include <algorithm>

#include "dsl/ops/control.h"
#include "passes/emit.h"

namespace sluice::dsl::train {

using graph::ControlDependencies;
using graph::NameScope;
using passes::Emit;

namespace {

struct Written {
  Output handle;
  std::vector<Node*> writers;
};

// Variables that ops from `first_id` on write on the way to `update`.
std::vector<Written> written_by(Node& update, int first_id) {
  std::vector<Written> out;
  Node* root = &update;
  for (Node* n : graph::ancestors(std::span<Node* const>(&root, 1))) {
    if (n->id() < first_id || !n->has(graph::kWritesVariable)) continue;
    for (const Output& in : n->inputs()) {
      if (!in.node->has(graph::kVariable)) continue;
      auto it = std::find_if(out.begin(), out.end(), [&](const Written& w) { return w.handle == in; });
      if (it == out.end()) it = out.insert(out.end(), Written{in, {}});
      it->writers.push_back(n);
    }
  }
  return out;
}

Output read(const Emit& e, const Output& handle) {
  if (graph::is_ref(handle.node->output_type(handle.index))) return e.op("Identity", {handle});
  return e.op("ReadVariableOp", {handle}, {}, {{"dtype", handle.node->attr<DType>("dtype")}});
}

}  // namespace

Node& apply_if(const Tensor& keep, const std::function<Node&()>& build, Loc loc) {
  Graph& g = keep.graph();
  const int first_id = g.nodes().back()->id() + 1;
  Node& update = build();
  NameScope scope(g, "apply_if");
  const Emit e{g, loc};
  std::vector<Written> variables = written_by(update, first_id);
  std::vector<Output> before;
  for (const Written& w : variables) {
    before.push_back(read(e, w.handle));
    for (Node* writer : w.writers) g.add_control_input(*writer, *before.back().node);
  }
  std::vector<Node*> done{&update};
  ControlDependencies after(g, {&update});
  for (size_t i = 0; i < variables.size(); ++i) {
    const Output& handle = variables[i].handle;
    const Output value = e.op("Select", {keep, read(e, handle), before[i]});
    const bool ref = graph::is_ref(handle.node->output_type(handle.index));
    AttrMap attrs;
    if (!ref) attrs["dtype"] = handle.node->attr<DType>("dtype");
    done.push_back(&e.node(ref ? "Assign" : "AssignVariableOp", {handle, value}, {}, std::move(attrs)));
  }
  return group(g, done, {}, loc);
}

}  // namespace sluice::dsl::train
