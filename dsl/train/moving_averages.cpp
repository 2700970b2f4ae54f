#include "dsl/train/moving_averages.h"

#include <algorithm>

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"
#include "dsl/train/optimizer_internal.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::NameScope;

void OptimizerWrapper::create_slots(const std::vector<Variable>&, Loc) {
  SLUICE_CHECK(false, "a wrapper of ", inner_.name(), " was asked for slots");
}
Node& OptimizerWrapper::apply_dense(const Output&, const Variable& v, Loc) {
  SLUICE_CHECK(false, "a wrapper of ", inner_.name(), " was asked to update a variable");
  return v.node();
}
Node& OptimizerWrapper::apply_sparse(const IndexedSlices&, const Variable& v, Loc) {
  SLUICE_CHECK(false, "a wrapper of ", inner_.name(), " was asked to update a variable");
  return v.node();
}

namespace {

VariableOptions untrained(const Variable& like) {
  VariableOptions o;
  o.dtype = like.dtype();
  o.initializer = zeros_initializer();
  o.trainable = false;
  o.use_resource = like.is_resource();
  o.regularizer = [](const Variable&) { return Tensor(); };
  return o;
}

// `name` in the open variable scope, or the first `name_<i>` that is free.
std::string free_name(Graph& g, const std::string& name) {
  const std::string scope = variable_scope_name(g) + "/";
  std::vector<std::string> taken;
  for (const Variable& v : global_variables(g)) taken.push_back(v.name());
  std::string candidate = name;
  for (int i = 1; std::find(taken.begin(), taken.end(), scope + candidate) != taken.end(); ++i)
    candidate = cat(name, "_", i);
  return candidate;
}

// `rate` is 1 - decay.
Node& assign_debiased(const Variable& v, const Tensor& value, const Tensor& rate, Loc loc) {
  Graph& g = v.graph();
  VariableScope scope(g, v.name());
  Variable biased, step;
  {
    ControlDependencies outside(g, ControlDependencies::Clear{});
    biased = get_variable(g, free_name(g, "biased"), v.shape().dims(), untrained(v), loc);
    step = get_variable(g, free_name(g, "local_step"), {}, untrained(v), loc);
  }
  const Tensor gap = subtract(biased.value(loc), value, "sub", loc);
  const Tensor new_biased =
      value_after(biased, assign_sub_op(biased, multiply(gap, rate, "mul", loc), {}, loc), loc);
  const Tensor new_step = value_after(step, assign_add_op(step, 1.0, {}, loc), loc);
  const Tensor left = pow(subtract(1.0, rate, "sub", loc), new_step, {}, loc);
  return assign_op(v, divide(new_biased, subtract(1.0, left, "sub", loc), {}, loc), {}, loc);
}

}  // namespace

Node& assign_moving_average(const Variable& v, const Operand& value, const Operand& decay, bool zero_debias,
                            const std::string& name, Loc loc) {
  Graph& g = v.graph();
  Call c(g, name, "AssignMovingAvg", loc);
  ColocateWith beside(g, &v.node());
  Tensor rate = decay.is_number() ? Tensor(c.scalar(v.dtype(), 1.0 - decay.number(), "decay"))
                                  : subtract(1.0, decay, "sub", loc);
  rate = cast(rate, v.dtype(), {}, loc);
  if (zero_debias) return assign_debiased(v, c.in(value, "value", v.dtype()), rate, loc);
  const Tensor gap = subtract(v.value(loc), value, "sub", loc);
  const Tensor delta = multiply(gap, rate, "mul", loc);
  return assign_sub_op(v, delta, v.is_resource() ? std::string() : c.scope(), loc);
}

ExponentialMovingAverage::ExponentialMovingAverage(const Operand& decay, const MovingAverageOptions& o)
    : decay_(decay), o_(o) {}

// The shadow of a variable starts at the value the variable has when the shadow is initialised: behind the
// variable's own initialiser (variables_initializer sees to it), or what a checkpoint gave it.
Variable ExponentialMovingAverage::shadow_of(const Variable& v, Loc loc) {
  if (Variable made = average(v)) return made;
  Graph& g = v.graph();
  ControlDependencies outside(g, ControlDependencies::Clear{});
  VariableScope scope(g, VariableScope::Default{v.name() + "/" + o_.name});
  ColocateWith beside(g, &v.node());
  VariableOptions o = untrained(v);
  const Dims dims = v.shape().dims();
  o.initializer = [&](Graph&, const Dims&, DType, Loc at) { return v.read_value({}, at); };
  Variable shadow = get_variable(g, "", dims, o, loc);
  keep_slice(v, shadow);
  averages_[v.handle()] = shadow;
  g.collections().add_unique(graph::keys::kMovingAverageVariables, v.info());
  return shadow;
}

Variable ExponentialMovingAverage::shadow_of(const Tensor& t, Loc loc) {
  if (Variable made = average(t)) return made;
  Graph& g = t.graph();
  SLUICE_REQUIRE_AT(loc, t.shape().fully_known(), Code::kInvalidArgument, "The average of '", t.name(),
                    "' needs a known shape, has ", t.shape());
  ControlDependencies outside(g, ControlDependencies::Clear{});
  VariableScope scope(g, VariableScope::Default{t.node().name() + "/" + o_.name});
  VariableOptions o;
  o.dtype = t.dtype();
  o.initializer = zeros_initializer();
  o.trainable = false;
  o.regularizer = [](const Variable&) { return Tensor(); };
  Variable shadow = get_variable(g, "", t.shape().dims(), o, loc);
  averages_[t.output()] = shadow;
  return shadow;
}

Node& ExponentialMovingAverage::apply(Graph& g, const std::optional<std::vector<Variable>>& variables,
                                      const std::vector<Tensor>& tensors, Loc loc) {
  auto check = [&](DType t, const std::string& name) {
    SLUICE_REQUIRE_AT(loc, graph::is_floating(t), Code::kInvalidArgument,
                      "The variables must be half, float, or double: ", name);
  };
  const std::vector<Variable> vars = variables         ? *variables
                                     : tensors.empty() ? trainable_variables(g)
                                                       : std::vector<Variable>();
  for (const Variable& v : vars) {
    check(v.dtype(), v.name());
    shadow_of(v, loc);
  }
  for (const Tensor& t : tensors) {
    check(t.dtype(), t.name());
    shadow_of(t, loc);
  }
  NameScope scope(g, o_.name);
  Operand decay = decay_.is_number() && !o_.num_updates
                      ? decay_
                      : Operand(decay_.tensor(g, "decay", DType::kFloat, loc), loc);
  if (o_.num_updates) {
    const Tensor n =
        cast(o_.num_updates->tensor(g, "num_updates", DType::kFloat, loc), DType::kFloat, "num_updates", loc);
    const Tensor early = divide(add(1.0, n, "add", loc), add(10.0, n, "add", loc), {}, loc);
    decay = Operand(minimum(decay, early, {}, loc), loc);
  }
  std::vector<Node*> updates;
  for (const Variable& v : vars)
    updates.push_back(&assign_moving_average(average(v), Operand(v, loc), decay, false, {}, loc));
  for (const Tensor& t : tensors)
    updates.push_back(&assign_moving_average(average(t), Operand(t, loc), decay, o_.zero_debias, {}, loc));
  return group(g, updates, scope.scope(), loc);
}

Variable ExponentialMovingAverage::average(const Variable& v) const {
  const auto it = averages_.find(v.handle());
  return it == averages_.end() ? Variable() : it->second;
}

Variable ExponentialMovingAverage::average(const Tensor& t) const {
  const auto it = averages_.find(t.output());
  return it == averages_.end() ? Variable() : it->second;
}

std::string ExponentialMovingAverage::average_name(const Variable& v) const {
  if (Variable shadow = average(v)) return shadow.name();
  return v.graph().unique_name(v.name() + "/" + o_.name, /*mark_as_used=*/false);
}

std::vector<std::pair<std::string, Variable>> ExponentialMovingAverage::variables_to_restore(
    Graph& g, const std::optional<std::vector<Variable>>& averaged) const {
  std::vector<Variable> vars;
  if (averaged) {
    vars = *averaged;
  } else {
    vars = trainable_variables(g);
    for (const Variable& v : get_variables(g, graph::keys::kMovingAverageVariables)) vars.push_back(v);
  }
  std::map<std::string, Variable> out;
  std::vector<std::string> names;
  for (const Variable& v : vars) {
    out[average_name(v)] = v;
    names.push_back(v.name());
  }
  for (const Variable& v : global_variables(g))
    if (std::find(names.begin(), names.end(), v.name()) == names.end()) out.emplace(v.name(), v);
  return {out.begin(), out.end()};
}

MovingAverageOptimizer::MovingAverageOptimizer(Optimizer& inner, const MovingAverageOptimizerOptions& o)
    : OptimizerWrapper(inner, inner.name()),
      ema_(o.average_decay, {.num_updates = o.num_updates}),
      sequential_(o.sequential_update) {}

Node& MovingAverageOptimizer::apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step,
                                              const std::string& name, Loc loc) {
  Node& train = inner_.apply_gradients(grads_and_vars, global_step, name, loc);
  Graph& g = train.graph();
  std::vector<Variable> vars;
  for (const GradVar& p : grads_and_vars)
    if (!p.grad.none()) vars.push_back(p.var);
  Node* averaged = nullptr;
  if (sequential_) {
    ControlDependencies after(g, {&train});
    averaged = &ema_.apply(g, vars, {}, loc);
  } else {
    averaged = &ema_.apply(g, vars, {}, loc);
  }
  graph_ = &g;
  for (const Variable& v : vars) {
    const std::string shadow = ema_.average(v).name();
    swap_[v.name()] = shadow;
    swap_[shadow] = v.name();
  }
  return group(g, {&train, averaged}, "train_with_avg", loc);
}

std::vector<std::pair<std::string, Variable>> MovingAverageOptimizer::swapped_variables(
    const std::optional<std::vector<Variable>>& variables) const {
  SLUICE_REQUIRE(graph_, Code::kFailedPrecondition,
                 "Must call apply_gradients or minimize before creating the swapping_saver");
  std::map<std::string, Variable> by_name;
  for (const Variable& v : variables ? *variables : global_variables(*graph_)) by_name[v.name()] = v;
  std::vector<std::pair<std::string, Variable>> out;
  for (const auto& [name, v] : by_name) {
    const auto other = swap_.find(name);
    if (other == swap_.end()) {
      out.emplace_back(name, v);
      continue;
    }
    const auto it = by_name.find(other->second);
    SLUICE_REQUIRE(it != by_name.end(), Code::kInvalidArgument, "Variable to swap ", other->second,
                   " is not in variables to save. This breaks the swapping functionality and is not "
                   "supported.");
    out.emplace_back(name, it->second);
  }
  return out;
}

Saver MovingAverageOptimizer::swapping_saver(const std::optional<std::vector<Variable>>& variables,
                                             SaverOptions o, Loc loc) const {
  o.variables = swapped_variables(variables);
  if (o.name == SaverOptions().name) o.name = "swapping_saver";
  return Saver(*graph_, o, loc);
}

}  // namespace sluice::dsl::train
