#include "dsl/train/optimizer.h"

#include <algorithm>

#include "dsl/ops/control.h"
#include "dsl/require.h"
#include "dsl/train/constraint.h"
#include "dsl/train/optimizer_internal.h"
#include "graph/support/log.h"
#include "passes/control.h"
#include "passes/emit.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::GraphElement;
using graph::NameScope;
using passes::Emit;

namespace {

std::string names_of(const std::vector<Variable>& vars) {
  std::string s = "[";
  for (const Variable& v : vars) s += cat(s.size() > 1 ? ", " : "", "'", v.name(), "'");
  return s + "]";
}

bool any_gradient(const GradsAndVars& pairs) {
  return std::any_of(pairs.begin(), pairs.end(), [](const GradVar& p) { return !p.grad.none(); });
}

// UPDATE_OPS that neither the loss nor an open control-dependency scope will run.
bool has_stray_updates(const Tensor& loss) {
  Graph& g = loss.graph();
  auto updates = g.collections().elements(graph::keys::kUpdateOps);
  if (updates.empty()) return false;
  Node* root = &loss.node();
  std::vector<Node*> run = graph::ancestors(std::span<Node* const>(&root, 1));
  for (const auto& c : g.scopes().controllers) run.insert(run.end(), c.controls.begin(), c.controls.end());
  return std::any_of(updates.begin(), updates.end(), [&](const GraphElement& e) {
    return std::find(run.begin(), run.end(), e.node) == run.end();
  });
}

void warn_about_updates(const Tensor& loss) {
  std::any& warned = loss.graph().attachment("dsl.update_ops_warned");
  if (warned.has_value() || !has_stray_updates(loss)) return;
  warned = true;
  log_warning(
      "minimize: the collection UPDATE_OPS is not empty and nothing runs it, so moving averages (batch "
      "norm) stay as they are. Use create_train_op, or call minimize inside control dependencies on "
      "them.");
}

// For each variable, why nothing reaches it.
std::string explain_cuts(const GradsAndVars& pairs, const Tensor& loss) {
  std::string out;
  for (const GradVar& p : pairs) {
    out += cat("\n  '", p.var.name(), "': ");
    std::vector<Node*> ops = passes::cutting_ops({loss.output()}, p.var.handle());
    if (ops.empty()) out += "the loss does not depend on it";
    for (size_t i = 0; i < ops.size() && i < 4; ++i) {
      out += cat(i ? ", " : "no gradient flows through ", "'", ops[i]->name(), "' (op type: ", ops[i]->op(),
                 ")");
      if (ops[i]->loc().known()) out += " made at " + ops[i]->loc().str();
    }
  }
  return out;
}

}  // namespace

GradsAndVars Optimizer::compute_gradients(const Tensor& loss, const ComputeOptions& o, Loc loc) {
  constexpr const char* kExpected = ", expected: [float32, float64, float16, bfloat16].";
  SLUICE_REQUIRE_AT(loc, loss, Code::kInvalidArgument, "compute_gradients: the loss is an empty tensor");
  SLUICE_REQUIRE_AT(loc, graph::is_floating(loss.dtype()), Code::kInvalidArgument, "Invalid type ",
                    loss.dtype(), " for ", loss.name(), kExpected);
  Graph& g = loss.graph();
  std::vector<Variable> vars;
  if (o.var_list) {
    vars = *o.var_list;
  } else {
    vars = trainable_variables(g);
    for (const Variable& v : get_variables(g, graph::keys::kTrainableResourceVariables)) vars.push_back(v);
  }
  SLUICE_REQUIRE_AT(loc, !vars.empty(), Code::kInvalidArgument, "No variables to optimize.");
  std::vector<Output> handles;
  for (const Variable& v : vars) {
    SLUICE_REQUIRE_AT(loc, graph::is_floating(v.dtype()), Code::kInvalidArgument, "Invalid type ", v.dtype(),
                      " for variable '", v.name(), "'", kExpected,
                      " Make it with trainable = false or leave it out of var_list.");
    handles.push_back(v.handle());
  }
  passes::GradientOptions go;
  if (!o.grad_loss.none()) go.grad_ys = {o.grad_loss};
  go.gate_gradients = o.gate_gradients == Gate::kOp;
  go.aggregation_method = o.aggregation_method;
  go.colocate_gradients_with_ops = o.colocate_gradients_with_ops;
  go.loc = loc;
  std::vector<GradValue> grads = passes::gradients({loss}, handles, go);
  GradsAndVars out;
  for (size_t i = 0; i < vars.size(); ++i) out.push_back({grads[i], vars[i]});
  if (o.gate_gradients == Gate::kGraph && any_gradient(out)) {
    grads = passes::tuple(g, grads, {}, {}, loc);
    for (size_t i = 0; i < vars.size(); ++i) out[i].grad = grads[i];
  }
  return out;
}

Node& Optimizer::minimize(const Tensor& loss, const Variable& global_step, const ComputeOptions& o,
                          const std::string& name, Loc loc) {
  warn_about_updates(loss);
  GradsAndVars pairs = compute_gradients(loss, o, loc);
  if (any_gradient(pairs)) return apply_gradients(pairs, global_step, name, loc);
  std::vector<Variable> vars;
  for (const GradVar& p : pairs) vars.push_back(p.var);
  throw_error(
      Code::kInvalidArgument,
      cat("No gradients provided for any variable, check your graph for ops that do not support gradients, "
          "between variables ",
          names_of(vars), " and loss ", loss.name(), ".", explain_cuts(pairs, loss)),
      loss.node().name(), loc);
}

Output Optimizer::hyper(const std::string& name, const Variable& v, Loc loc) {
  Output t = hyper_.at(name);
  if (t.dtype() == v.dtype()) return t;
  return Emit{v.graph(), loc}.op("Cast", {t}, {}, {{"DstT", v.dtype()}});
}

Node& Optimizer::update_op(const std::string& op, const Variable& v, std::vector<Output> inputs,
                           AttrMap attrs, Loc loc, const std::string& name) {
  Graph& g = v.graph();
  std::string type = v.is_resource() ? "Resource" + op : op;
  SLUICE_REQUIRE_AT(loc, g.ops().find(type), Code::kUnimplemented, name_, ": updating '", v.name(),
                    "' needs the op ", type,
                    ", which this build does not have. A sparse gradient can be made dense with densify().");
  attrs["use_locking"] = use_locking_;
  return Emit{g, loc}.node(type, std::move(inputs), name, std::move(attrs));
}

// Sums the rows that one index names several times.
IndexedSlices Optimizer::unique_rows(const IndexedSlices& grad, Loc loc) const {
  Graph& g = grad.values.graph();
  SLUICE_REQUIRE_AT(
      loc, g.ops().find("Unique"), Code::kUnimplemented, name_,
      ": merging duplicate indices needs the op Unique, which this build does not have. A sparse "
      "gradient can be made dense with densify().");
  Emit e{g, loc};
  Node& unique = e.node("Unique", {grad.indices});
  Output count = e.op("Shape", {unique.output(0)});
  Output rows;
  {
    NameScope scope(g, "strided_slice");
    Output begin = e.i32s({0}, "stack"), end = e.i32s({1}, "stack_1"), step = e.i32s({1}, "stack_2");
    rows = e.op("StridedSlice", {count, begin, end, step}, scope.scope(), {{"shrink_axis_mask", 1}});
  }
  IndexedSlices out = grad;
  out.values = e.op("UnsortedSegmentSum", {grad.values, unique.output(1), rows});
  out.indices = unique.output(0);
  return out;
}

Node& Optimizer::update_one(const GradVar& gv, Loc loc) {
  const Constraint constraint = constraint_of(gv.var);
  if (gv.grad.is_slices()) {
    SLUICE_REQUIRE_AT(loc, !constraint, Code::kFailedPrecondition,
                      "Cannot use a constraint function on a sparse variable. Variable '", gv.var.name(),
                      "'");
    const IndexedSlices& s = gv.grad.slices;
    return apply_sparse(merge_duplicates() ? unique_rows(s, loc) : s, gv.var, loc);
  }
  const Output& grad = gv.grad.dense;
  SLUICE_REQUIRE_AT(loc, grad.dtype() == gv.var.dtype() && grad.shape().compatible(gv.var.shape()),
                    Code::kInvalidArgument, "Gradient ", grad.name(), " of type ", grad.dtype(),
                    " and shape ", grad.shape(), " does not fit variable '", gv.var.name(), "' of type ",
                    gv.var.dtype(), " and shape ", gv.var.shape());
  Node& update = apply_dense(grad, gv.var, loc);
  if (!constraint) return update;
  ControlDependencies after(gv.var.graph(), {&update});
  return assign_op(gv.var, constraint(gv.var.read_value({}, loc)), {}, loc);
}

Node& Optimizer::apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step,
                                 const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !grads_and_vars.empty(), Code::kInvalidArgument, "No variables provided.");
  std::vector<Variable> all, vars;
  for (const GradVar& p : grads_and_vars) {
    all.push_back(p.var);
    if (!p.grad.none()) vars.push_back(p.var);
  }
  SLUICE_REQUIRE_AT(loc, !vars.empty(), Code::kInvalidArgument,
                    "No gradients provided for any variable: ", names_of(all), ".");
  Graph& g = vars[0].graph();
  g.check_not_finalized();
  create_slots(vars, loc);
  NameScope scope(g, name.empty() ? name_ : name);
  hyper_.clear();
  for (const auto& [key, value] : hyper_parameters())
    hyper_[key] = value.tensor(g, key, vars[0].dtype(), loc);
  prepare(g, loc);
  std::vector<Node*> updates;
  for (const GradVar& p : grads_and_vars) {
    if (p.grad.none()) continue;
    NameScope inner(g, "update_" + p.var.name());
    ColocateWith beside(g, &p.var.node());
    updates.push_back(&update_one(p, loc));
  }
  std::vector<Node*> rest = finish(updates, loc);
  updates.insert(updates.end(), rest.begin(), rest.end());
  Node* done = nullptr;
  if (!global_step) {
    done = &group(g, updates, scope.scope(), loc);
  } else {
    ControlDependencies after(g, {&group(g, updates, "update", loc)});
    ColocateWith beside(g, &global_step.node());
    Emit e{g, loc};
    bool resource = global_step.is_resource();
    Output one = e.scalar(global_step.dtype(), 1, resource ? "Const" : "value");
    AttrMap attrs;
    if (resource) attrs["dtype"] = global_step.dtype();
    done = &e.node(resource ? "AssignAddVariableOp" : "AssignAdd", {global_step.handle(), one}, scope.scope(),
                   std::move(attrs));
  }
  g.collections().add_unique(graph::keys::kTrainOp, GraphElement{done, -1});
  return *done;
}

std::vector<Node*> Optimizer::finish(const std::vector<Node*>&, Loc) { return {}; }

Variable Optimizer::get_slot(const Variable& var, const std::string& slot) const {
  auto named = slots_.find(slot);
  if (named == slots_.end()) return {};
  auto it = named->second.find(&var.node());
  return it == named->second.end() ? Variable() : it->second;
}

std::vector<std::string> Optimizer::get_slot_names() const {
  std::vector<std::string> out;
  for (const auto& [key, vars] : slots_) out.push_back(key);
  return out;
}

void keep_slice(const Variable& v, const Variable& made) {
  const auto& part = v.info()->slice;
  if (!part) return;
  graph::SaveSlice slice = *part;
  const size_t at = made.name().rfind(v.name() + "/");
  slice.full_name += "/" + made.name().substr(at + v.name().size() + 1);
  made.info()->slice = std::make_shared<const graph::SaveSlice>(std::move(slice));
}

Variable Optimizer::slot(const Variable& v, const std::string& slot, Loc loc, double value,
                         const std::string& op_name) {
  if (Variable found = get_slot(v, slot)) return found;
  Graph& g = v.graph();
  SLUICE_REQUIRE_AT(loc, v.shape().fully_known(), Code::kInvalidArgument, "Variable '", v.name(),
                    "' needs a known shape for its slot, has ", v.shape());
  VariableScope scope(g, VariableScope::Default{v.name() + "/" + (op_name.empty() ? name_ : op_name)});
  ColocateWith beside(g, &v.node());
  VariableOptions o;
  o.dtype = v.dtype();
  o.initializer = value == 0   ? zeros_initializer()
                  : value == 1 ? ones_initializer()
                               : constant_initializer(value);
  o.trainable = false;
  o.use_resource = v.is_resource();
  o.regularizer = [](const Variable&) { return Tensor(); };
  Variable made = get_variable(g, "", v.shape().dims(), o, loc);
  keep_slice(v, made);
  slots_[slot][&v.node()] = made;
  return made;
}

}  // namespace sluice::dsl::train
