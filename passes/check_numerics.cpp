#include "passes/check_numerics.h"

#include "passes/control.h"
#include "passes/emit.h"

namespace sluice::passes {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::NameScope;
using graph::Trait;

namespace {

bool checkable(DType t) {
  t = graph::base_dtype(t);
  return t == DType::kHalf || t == DType::kFloat || t == DType::kDouble;
}

}  // namespace

Output check_numerics(Output t, const std::string& message, const std::string& name, Loc loc) {
  return Emit{t.graph(), loc}.op("CheckNumerics", {t}, name, {{"message", message}});
}

Output verify_tensor_all_finite(Output t, const std::string& message, const std::string& name, Loc loc) {
  Graph& g = t.graph();
  NameScope scope(g, name.empty() ? "VerifyFinite" : name);
  ColocateWith beside(g, t.node);
  Output checked = check_numerics(t, message, {}, loc);
  return with_dependencies({checked.node}, t, {}, loc).dense;
}

Node& add_check_numerics_ops(Graph& g, Loc loc) {
  std::vector<Node*> checks;
  auto add = [&](Output t, const std::string& message) {
    std::vector<Node*> after;
    if (!checks.empty()) after.push_back(checks.back());
    ControlDependencies deps(g, after);
    checks.push_back(check_numerics(t, message, {}, loc).node);
  };
  for (Node* n : g.nodes()) {
    SLUICE_REQUIRE(!n->has(Trait::kControlFlow), Code::kInvalidArgument,
                   "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations "
                   "such as `tf.cond()` or `tf.while_loop()`: '",
                   n->name(), "' is one");
    bool from_scratch = n->has(Trait::kWritesVariable) && n->has(Trait::kAllowsUninitialized);
    if (from_scratch || n->has(Trait::kHostOnly)) continue;
    for (int i = 0; i < n->num_outputs(); ++i) {
      // A bare variable may be uninitialised; its reads and updates are checked instead.
      if (n->has(Trait::kVariable) || !checkable(n->output_type(i))) continue;
      add(n->output(i), cat(n->name(), ":", i));
    }
    if (n->has(Trait::kWritesVariable) && n->num_outputs() == 0 && n->num_inputs() > 0) {
      Output handle = n->input(0);
      const graph::AttrValue* dtype = handle.node->find_attr("dtype");
      const DType* t = dtype ? dtype->get_if<DType>() : nullptr;
      if (!t || !checkable(*t)) continue;
      Output read;
      {
        ControlDependencies deps(g, {n});
        read = Emit{g, loc}.op("ReadVariableOp", {handle}, {}, {{"dtype", *t}});
      }
      add(read, cat(n->name(), ": variable ", handle.node->name()));
    }
  }
  return group(g, checks.empty() ? checks : std::vector<Node*>{checks.back()}, {}, loc);
}

}  // namespace sluice::passes
