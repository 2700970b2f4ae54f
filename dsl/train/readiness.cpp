#include "dsl/train/readiness.h"

#include "dsl/ops/array.h"
#include "dsl/ops/index.h"
#include "dsl/ops/math.h"

namespace sluice::dsl::train {

using graph::DeviceScope;
using graph::NameScope;

namespace {

Tensor no_names(Graph& g, Loc loc) {
  return constant(g, Literal::strings(std::vector<std::string>{}), {}, loc);
}

// Ref variables of the graph that no collection knows: handles and names.
void ref_variables(Graph& g, std::vector<Operand>& initialized, std::vector<std::string>& names, Loc loc) {
  std::vector<Node*> found;
  for (Node* n : g.nodes())
    if (n->has(graph::kVariable) && graph::is_ref(n->output_type(0))) found.push_back(n);
  for (Node* n : found) {
    initialized.emplace_back(
        g.add({.op = "IsVariableInitialized", .inputs = {n->output()}, .loc = loc}).output());
    names.push_back(n->name());
  }
}

}  // namespace

Tensor report_uninitialized_variables(Graph& g, const std::optional<std::vector<Variable>>& variables,
                                      const std::string& name, Loc loc) {
  std::vector<Variable> vars;
  if (variables) {
    vars = *variables;
  } else {
    vars = global_variables(g);
    for (const Variable& v : local_variables(g)) vars.push_back(v);
  }
  NameScope scope(g, name.empty() ? "report_uninitialized_variables" : name);
  std::vector<Operand> initialized;
  std::vector<std::string> names;
  for (const Variable& v : vars) {
    initialized.emplace_back(is_variable_initialized(v, {}, loc));
    names.push_back(v.name());
  }
  if (vars.empty() && !variables) ref_variables(g, initialized, names, loc);
  DeviceScope cpu(g, "/cpu:0");
  if (names.empty()) return no_names(g, loc);
  Tensor missing = logical_not(stack(initialized, 0, {}, loc), {}, loc);
  return boolean_mask(constant(g, Literal::strings(std::move(names)), {}, loc), missing, 0, {}, loc);
}

Tensor report_uninitialized_resources(Graph& g, const std::string& name, Loc loc) {
  NameScope scope(g, name.empty() ? "report_uninitialized_resources" : name);
  DeviceScope cpu(g, "/cpu:0");
  return no_names(g, loc);
}

Tensor ready_report(Graph& g, Loc loc) {
  Tensor variables = report_uninitialized_variables(g, {}, {}, loc);
  Tensor resources = report_uninitialized_resources(g, {}, loc);
  return concat({variables, resources}, 0, {}, loc);
}

std::vector<Variable> moving_average_variables(Graph& g, const std::string& scope) {
  return get_variables(g, graph::keys::kMovingAverageVariables, scope);
}
std::vector<Variable> metric_variables(Graph& g, const std::string& scope) {
  return get_variables(g, graph::keys::kMetricVariables, scope);
}

}  // namespace sluice::dsl::train
