#include "dsl/train/global_step.h"

#include "dsl/require.h"
#include "dsl/variable_store.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {

Variable get_global_step(Graph& g) {
  std::vector<Variable> steps = get_variables(g, graph::keys::kGlobalStep);
  if (steps.empty()) return {};
  if (steps.size() > 1) {
    log_error("Multiple tensors in global_step collection.");
    return {};
  }
  const Variable& step = steps[0];
  SLUICE_REQUIRE(graph::is_integer(step.dtype()), Code::kInvalidArgument,
                 "Existing \"global_step\" does not have integer type: ", step.dtype());
  SLUICE_REQUIRE(step.shape() == Shape::scalar() || !step.shape().fully_known(), Code::kInvalidArgument,
                 "Existing \"global_step\" is not scalar: ", step.shape());
  return step;
}

Variable create_global_step(Graph& g, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !get_global_step(g), Code::kAlreadyExists, "\"global_step\" already exists.");
  VariableStore& store = VariableStore::of(g);
  SLUICE_REQUIRE_AT(loc, store.variables.find("global_step") == store.variables.end(), Code::kAlreadyExists,
                    "a variable \"global_step\" exists that is not in the GLOBAL_STEP collection");
  VariableOptions o;
  o.dtype = DType::kInt64;
  o.initializer = zeros_initializer();
  o.trainable = false;
  o.collections = {graph::keys::kGlobalVariables, graph::keys::kGlobalStep};
  // At the root whatever scopes are open: one graph has one step.
  bool resource = store.scopes.back().use_resource.value_or(true);
  Variable step = create_variable(g, "global_step", /*scoped=*/false, {}, o, resource, loc);
  store.variables["global_step"] = {step, loc};
  return step;
}

Variable get_or_create_global_step(Graph& g, Loc loc) {
  Variable step = get_global_step(g);
  return step ? step : create_global_step(g, loc);
}

}  // namespace sluice::dsl::train
