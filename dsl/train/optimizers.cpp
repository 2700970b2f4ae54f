// The four optimizers: their slots and update ops.
#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/index.h"
#include "dsl/ops/math.h"
#include "dsl/train/optimizer.h"
#include "dsl/train/optimizer_internal.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::ControlDependencies;

GradientDescentOptimizer::GradientDescentOptimizer(const Operand& learning_rate, bool use_locking,
                                                   std::string name)
    : Optimizer(std::move(name), use_locking), learning_rate_(learning_rate) {}

std::vector<std::pair<std::string, Operand>> GradientDescentOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_}};
}

Node& GradientDescentOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  return update_op("ApplyGradientDescent", v, {v.handle(), hyper("learning_rate", v, loc), grad}, {}, loc);
}

Node& GradientDescentOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  const Tensor rate = hyper("learning_rate", v, loc), rows = grad.values;
  if (!v.is_resource()) return scatter_sub(v, grad.indices, multiply(rows, rate, "mul", loc), {}, loc);
  return scatter_add(v, grad.indices, multiply(negative(rows, {}, loc), rate, "mul", loc), {}, loc);
}

MomentumOptimizer::MomentumOptimizer(const Operand& learning_rate, const Operand& momentum,
                                     const MomentumOptions& o)
    : Optimizer(o.name, o.use_locking),
      learning_rate_(learning_rate),
      momentum_(momentum),
      use_nesterov_(o.use_nesterov) {}

std::vector<std::pair<std::string, Operand>> MomentumOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_}, {"momentum", momentum_}};
}

void MomentumOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) slot(v, "momentum", loc);
}

Node& MomentumOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  Output rate = hyper("learning_rate", v, loc), momentum = hyper("momentum", v, loc);
  return update_op("ApplyMomentum", v, {v.handle(), get_slot(v, "momentum").handle(), rate, grad, momentum},
                   {{"use_nesterov", use_nesterov_}}, loc);
}

Node& MomentumOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  Output rate = hyper("learning_rate", v, loc), momentum = hyper("momentum", v, loc);
  return update_op("SparseApplyMomentum", v,
                   {v.handle(), get_slot(v, "momentum").handle(), rate, grad.values, grad.indices, momentum},
                   {{"use_nesterov", use_nesterov_}}, loc);
}

RMSPropOptimizer::RMSPropOptimizer(const Operand& learning_rate, const RMSPropOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> RMSPropOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"decay", Operand(o_.decay)},
          {"momentum", Operand(o_.momentum)},
          {"epsilon", Operand(o_.epsilon)}};
}

void RMSPropOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) {
    slot(v, "rms", loc, 1.0);
    if (o_.centered) slot(v, "mg", loc);
    slot(v, "momentum", loc);
  }
}

std::vector<Output> RMSPropOptimizer::slots_and_hypers(const Variable& v, Loc loc) {
  std::vector<Output> in{v.handle()};
  if (o_.centered) in.push_back(get_slot(v, "mg").handle());
  in.push_back(get_slot(v, "rms").handle());
  in.push_back(get_slot(v, "momentum").handle());
  for (const char* h : {"learning_rate", "decay", "momentum", "epsilon"}) in.push_back(hyper(h, v, loc));
  return in;
}

Node& RMSPropOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  std::vector<Output> in = slots_and_hypers(v, loc);
  in.push_back(grad);
  return update_op(o_.centered ? "ApplyCenteredRMSProp" : "ApplyRMSProp", v, std::move(in), {}, loc);
}

Node& RMSPropOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  std::vector<Output> in = slots_and_hypers(v, loc);
  in.push_back(grad.values);
  in.push_back(grad.indices);
  return update_op(o_.centered ? "SparseApplyCenteredRMSProp" : "SparseApplyRMSProp", v, std::move(in), {},
                   loc);
}

AdamOptimizer::AdamOptimizer(const Operand& learning_rate, const AdamOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> AdamOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"beta1", Operand(o_.beta1)},
          {"beta2", Operand(o_.beta2)},
          {"epsilon", Operand(o_.epsilon)}};
}

void AdamOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  if (!beta1_power_) {
    beta1_power_ = make_power(vars, o_.beta1, "beta1_power", loc);
    beta2_power_ = make_power(vars, o_.beta2, "beta2_power", loc);
  }
  for (const Variable& v : vars) {
    slot(v, "m", loc);
    slot(v, "v", loc);
  }
}

Node& AdamOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  // The power reads live in the op's own scope, as TensorFlow's conversions put them.
  graph::NameScope scope(v.graph(), v.is_resource() ? "ResourceApplyAdam" : "ApplyAdam");
  std::vector<Output> in{v.handle(), get_slot(v, "m").handle(), get_slot(v, "v").handle()};
  for (const Variable& power : {beta1_power_, beta2_power_}) {
    in.push_back(cast(power.value(loc), v.dtype(), {}, loc));
  }
  for (const char* h : {"learning_rate", "beta1", "beta2", "epsilon"}) in.push_back(hyper(h, v, loc));
  in.push_back(grad);
  return update_op("ApplyAdam", v, std::move(in), {}, loc, scope.scope());
}

Node& AdamOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  Graph& g = v.graph();
  const Tensor power1 = cast(beta1_power_.value(loc), v.dtype(), {}, loc);
  const Tensor power2 = cast(beta2_power_.value(loc), v.dtype(), {}, loc);
  const Tensor beta1 = hyper("beta1", v, loc), beta2 = hyper("beta2", v, loc), rows = grad.values;
  Tensor rate = multiply(Tensor(hyper("learning_rate", v, loc)),
                         sqrt(subtract(1.0, power2, "sub", loc), {}, loc), "mul", loc);
  rate = divide(rate, subtract(1.0, power1, "sub", loc), {}, loc);
  std::vector<Node*> writes;
  const Tensor m = average_rows(get_slot(v, "m"), beta1, grad.indices, rows, writes, loc);
  const Tensor squares = multiply(rows, rows, "mul", loc);
  const Tensor s = average_rows(get_slot(v, "v"), beta2, grad.indices, squares, writes, loc);
  const Tensor root = add(sqrt(s, {}, loc), Tensor(hyper("epsilon", v, loc)), "add", loc);
  writes.insert(writes.begin(),
                &assign_sub_op(v, divide(multiply(rate, m, "mul", loc), root, {}, loc), {}, loc));
  return group(g, writes, {}, loc);
}

std::vector<Node*> AdamOptimizer::finish(const std::vector<Node*>& updates, Loc loc) {
  ControlDependencies after(beta1_power_.graph(), updates);
  ColocateWith beside(beta1_power_.graph(), &beta1_power_.node());
  return {&scale_power(beta1_power_, hyper("beta1", beta1_power_, loc), loc),
          &scale_power(beta2_power_, hyper("beta2", beta2_power_, loc), loc)};
}

Variable make_power(const std::vector<Variable>& vars, double beta, const char* name, Loc loc) {
  Variable first = vars[0];
  for (const Variable& v : vars)
    if (v.name() < first.name()) first = v;
  ColocateWith beside(first.graph(), &first.node());
  VariableOptions o;
  o.trainable = false;
  o.use_resource = first.is_resource();
  return make_variable(first.graph(), Literal::scalar<double>(beta).cast(first.dtype()), name, o, loc);
}

Node& scale_power(const Variable& power, const Output& beta, Loc loc) {
  return assign_op(power, multiply(power.value(loc), Tensor(beta), "mul", loc), {}, loc);
}

Tensor value_after(const Variable& v, Node& write, Loc loc) {
  if (!v.is_resource()) return write.output();
  ControlDependencies after(v.graph(), {&write});
  return v.value(loc);
}

Tensor average_rows(const Variable& slot, const Tensor& beta, const Output& indices, const Tensor& x,
                    std::vector<Node*>& writes, Loc loc) {
  const Tensor part = multiply(x, subtract(1.0, beta, "sub", loc), "mul", loc);
  Node& decay = assign_op(slot, multiply(slot.value(loc), beta, "mul", loc), {}, loc);
  ControlDependencies decayed(slot.graph(), {&decay});
  Node& add = scatter_add(slot, indices, part, {}, loc);
  writes.push_back(&add);
  return value_after(slot, add, loc);
}

}  // namespace sluice::dsl::train
