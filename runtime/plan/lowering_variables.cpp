#include "runtime/plan/lowering.h"

#include "graph/support/check.h"

namespace sluice::runtime::plan {

VariableState& Lowering::track(const std::shared_ptr<Variable>& variable, const Node* node) {
  auto [it, fresh] = variables_.try_emplace(variable.get());
  VariableState& s = it->second;
  if (fresh) {
    s.variable = variable;
    s.node = node;
    // The hash first: a change in between makes the plan miss, never match wrongly.
    result_.variables.push_back({variable, variable->spec_hash()});
    s.spec = variable->spec();
    if (!s.spec && node && node->has(graph::kVariable)) {
      const Shape shape = node->attr_or<Shape>("shape", Shape());
      if (shape.fully_known()) s.spec = ValueSpec{variable->dtype(), shape.dims(), {}};
    }
    new_handle(s, node ? node->name() : variable->name());
  }
  return s;
}

ValueId Lowering::new_handle(VariableState& s, const std::string& name) {
  PlanValue v;
  v.storage = Storage::kHandle;
  v.variable = s.variable;
  v.name = name;
  v.known_dims = s.spec.has_value();
  v.spec = s.spec ? *s.spec : ValueSpec{s.variable->dtype(), {}, {}};
  return s.handle = g().add_value(std::move(v));
}

void Lowering::lower_variable(Node* n) {
  std::string name = n->attr_or<std::string>("shared_name", "");
  if (name.empty()) name = n->name();
  const DType dtype = plan_dtype(n->attr<DType>("dtype"), options_);
  auto variable = options_.resources->variable(n->attr_or<std::string>("container", ""), name, dtype);
  set_outputs(n, {track(variable, n).handle});
}

ValueId Lowering::read_variable(Node* n, ValueId handle, const std::vector<OpId>& after, bool is_ref) {
  VariableState& s = state(handle);
  if (s.read >= 0 && after.empty()) return s.read;
  if (!s.spec) {
    throw_error(Code::kFailedPrecondition,
                is_ref ? cat("Attempting to use uninitialized value ", s.variable->name())
                       : cat("Error while reading resource variable ", s.variable->name(),
                             " from Container: localhost. This could mean that the variable was "
                             "uninitialized. Not found: Resource localhost/",
                             s.variable->name(), " does not exist."),
                n->name(), n->loc());
  }
  PlanValue v;
  v.spec = *s.spec;
  v.storage = v.spec.dtype == DType::kString ? Storage::kDynamic : Storage::kVariable;
  v.variable = s.variable;
  v.name = n->num_outputs() > 0 ? n->output(0).name() : n->name();
  const ValueId out = g().add_value(std::move(v));
  PlanOp op{.op = "_Read",
            .kind = OpKind::kRead,
            .node = n,
            .attrs = {{"is_ref", is_ref}},
            .inputs = {s.handle},
            .outputs = {out},
            .after = after,
            .order = next_order_++};
  if (s.last_write >= 0) op.after.push_back(s.last_write);
  const OpId id = g().add(std::move(op));
  s.reads.push_back(id);
  if (after.empty()) s.read = out;
  return out;
}

}  // namespace sluice::runtime::plan
