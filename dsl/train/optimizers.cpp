// The four optimizers: their slots and update ops.
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/train/optimizer.h"

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
  // w -= lr·g is linear: summing the rows first gives the same result as subtracting them one by one.
  return apply_dense(graph::densify(v.graph(), grad), v, loc);
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
  Variable first = vars[0];
  for (const Variable& v : vars) {
    if (v.name() < first.name()) first = v;
  }
  if (!beta1_power_) {
    ColocateWith beside(first.graph(), &first.node());
    VariableOptions o;
    o.trainable = false;
    o.use_resource = first.is_resource();
    auto power = [&](double beta, const char* name) {
      return make_variable(first.graph(), Literal::scalar<double>(beta).cast(first.dtype()), name, o, loc);
    };
    beta1_power_ = power(o_.beta1, "beta1_power");
    beta2_power_ = power(o_.beta2, "beta2_power");
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
  // m and v decay in every row whether it was touched or not, so this is the dense update.
  return apply_dense(graph::densify(v.graph(), grad), v, loc);
}

std::vector<Node*> AdamOptimizer::finish(const std::vector<Node*>& updates, Loc loc) {
  Graph& g = beta1_power_.graph();
  ControlDependencies after(g, updates);
  ColocateWith beside(g, &beta1_power_.node());
  std::vector<Node*> out;
  auto scale = [&](const Variable& power, const char* beta) {
    Tensor next = multiply(power.value(loc), Tensor(hyper(beta, power, loc)), "mul", loc);
    out.push_back(&assign_op(power, next, {}, loc));
  };
  scale(beta1_power_, "beta1");
  scale(beta2_power_, "beta2");
  return out;
}

}  // namespace sluice::dsl::train
