// AdaMax, AdamW, LARS and LAMB: updates composed of several ops. What is computed stands in the header.
#include <algorithm>

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/index.h"
#include "dsl/ops/math.h"
#include "dsl/train/optimizer_internal.h"
#include "dsl/train/optimizers_more.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::ControlDependencies;

namespace {

bool contains_any(const std::string& name, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& p) { return name.find(p) != std::string::npos; });
}

// ratio where both norms are above 0, else 1.
Tensor where_positive(const Tensor& a, const Tensor& b, const Tensor& ratio, Loc loc) {
  const Tensor one = constant(a.graph(), 1.0, a.dtype(), {}, loc);
  const Tensor inner = where(greater(b, 0.0, {}, loc), ratio, one, {}, loc);
  return where(greater(a, 0.0, {}, loc), inner, one, {}, loc);
}

}  // namespace

AdaMaxOptimizer::AdaMaxOptimizer(const Operand& learning_rate, const AdaMaxOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> AdaMaxOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"beta1", Operand(o_.beta1)},
          {"beta2", Operand(o_.beta2)},
          {"epsilon", Operand(o_.epsilon)}};
}

void AdaMaxOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  if (!beta1_power_) beta1_power_ = make_power(vars, o_.beta1, "beta1_power", loc);
  for (const Variable& v : vars) {
    slot(v, "m", loc);
    slot(v, "v", loc);
  }
}

Node& AdaMaxOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  std::vector<Output> in{v.handle(), get_slot(v, "m").handle(), get_slot(v, "v").handle(),
                         cast(beta1_power_.value(loc), v.dtype(), {}, loc)};
  for (const char* h : {"learning_rate", "beta1", "beta2", "epsilon"}) in.push_back(hyper(h, v, loc));
  in.push_back(grad);
  return update_op("ApplyAdaMax", v, std::move(in), {}, loc);
}

Node& AdaMaxOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  Graph& g = v.graph();
  const Variable m = get_slot(v, "m"), s = get_slot(v, "v");
  const Tensor beta1 = hyper("beta1", v, loc), beta2 = hyper("beta2", v, loc), rows = grad.values,
               at = grad.indices;
  const Tensor old_m = gather(m, at, 0, {}, loc);
  const Tensor new_m = add(multiply(old_m, beta1, "mul", loc),
                           multiply(rows, subtract(1.0, beta1, "sub", loc), "mul", loc), "add", loc);
  const Tensor old_s = multiply(gather(s, at, 0, {}, loc), beta2, "mul", loc);
  const Tensor new_s = maximum(old_s, abs(rows, {}, loc), {}, loc);
  const Tensor power = cast(beta1_power_.value(loc), v.dtype(), {}, loc);
  const Tensor rate = divide(negative(Tensor(hyper("learning_rate", v, loc)), {}, loc),
                             subtract(1.0, power, "sub", loc), {}, loc);
  const Tensor root = add(new_s, Tensor(hyper("epsilon", v, loc)), "add", loc);
  const Tensor delta = multiply(rate, divide(new_m, root, {}, loc), "mul", loc);
  Node &write_m = scatter_update(m, at, new_m, {}, loc), &write_s = scatter_update(s, at, new_s, {}, loc);
  return group(g, {&scatter_add(v, at, delta, {}, loc), &write_m, &write_s}, {}, loc);
}

std::vector<Node*> AdaMaxOptimizer::finish(const std::vector<Node*>& updates, Loc loc) {
  ControlDependencies after(beta1_power_.graph(), updates);
  ColocateWith beside(beta1_power_.graph(), &beta1_power_.node());
  return {&scale_power(beta1_power_, hyper("beta1", beta1_power_, loc), loc)};
}

AdamWOptimizer::AdamWOptimizer(const Operand& weight_decay, const Operand& learning_rate,
                               const AdamWOptions& o)
    : AdamOptimizer(learning_rate, {.beta1 = o.beta1,
                                    .beta2 = o.beta2,
                                    .epsilon = o.epsilon,
                                    .use_locking = o.use_locking,
                                    .name = o.name}),
      weight_decay_(weight_decay),
      o_(o) {}

std::vector<std::pair<std::string, Operand>> AdamWOptimizer::hyper_parameters() const {
  auto h = AdamOptimizer::hyper_parameters();
  h.emplace_back("weight_decay", weight_decay_);
  return h;
}

bool AdamWOptimizer::decays(const Variable& v) const {
  return !o_.decay_var_list ||
         std::find(o_.decay_var_list->begin(), o_.decay_var_list->end(), v) != o_.decay_var_list->end();
}

Tensor AdamWOptimizer::decay_rate(const Variable& v, Loc loc) {
  const Tensor decay = hyper("weight_decay", v, loc);
  if (!o_.scale_decay_by_rate) return decay;
  return multiply(decay, Tensor(hyper("learning_rate", v, loc)), "mul", loc);
}

Node& AdamWOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  if (!decays(v)) return AdamOptimizer::apply_dense(grad, v, loc);
  const Tensor delta = multiply(decay_rate(v, loc), v.value(loc), "mul", loc);
  ControlDependencies decayed(v.graph(), {&assign_sub_op(v, delta, {}, loc)});
  return AdamOptimizer::apply_dense(grad, v, loc);
}

Node& AdamWOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  if (!decays(v)) return AdamOptimizer::apply_sparse(grad, v, loc);
  const Tensor rows = gather(v, Tensor(grad.indices), 0, {}, loc);
  const Tensor delta = multiply(negative(decay_rate(v, loc), {}, loc), rows, "mul", loc);
  ControlDependencies decayed(v.graph(), {&scatter_add(v, grad.indices, delta, {}, loc)});
  return AdamOptimizer::apply_sparse(grad, v, loc);
}

LARSOptimizer::LARSOptimizer(const Operand& learning_rate, const LARSOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> LARSOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_}, {"momentum", Operand(o_.momentum)}};
}

void LARSOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) slot(v, "momentum", loc);
}

Node& LARSOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  Tensor rate = hyper("learning_rate", v, loc), g = grad;
  if (!contains_any(v.name(), o_.skip_list)) {
    const Tensor w = v.value(loc), w_norm = norm(w, {}, {}, loc), g_norm = norm(g, {}, {}, loc);
    const Tensor below =
        add(add(g_norm, multiply(w_norm, o_.weight_decay, "mul", loc), "add", loc), o_.epsilon, "add", loc);
    // Where a norm is 0 the other branch counts; dividing by a norm of 0 gives nothing that is kept.
    const Tensor trust = div_no_nan(multiply(w_norm, o_.eeta, "mul", loc), below, {}, loc);
    rate = multiply(rate, where_positive(w_norm, g_norm, trust, loc), "mul", loc);
    g = add(g, multiply(w, o_.weight_decay, "mul", loc), "add", loc);
  }
  const Tensor one = constant(v.graph(), 1.0, v.dtype(), {}, loc);
  return update_op("ApplyMomentum", v,
                   {v.handle(), get_slot(v, "momentum").handle(), one, multiply(g, rate, "mul", loc),
                    hyper("momentum", v, loc)},
                   {{"use_nesterov", o_.use_nesterov}}, loc);
}

Node& LARSOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  return update_op("SparseApplyMomentum", v,
                   {v.handle(), get_slot(v, "momentum").handle(), hyper("learning_rate", v, loc), grad.values,
                    grad.indices, hyper("momentum", v, loc)},
                   {{"use_nesterov", o_.use_nesterov}}, loc);
}

LAMBOptimizer::LAMBOptimizer(const Operand& learning_rate, const LAMBOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> LAMBOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"beta1", Operand(o_.beta1)},
          {"beta2", Operand(o_.beta2)},
          {"epsilon", Operand(o_.epsilon)},
          {"weight_decay", Operand(o_.weight_decay)}};
}

void LAMBOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  if (!beta1_power_) {
    beta1_power_ = make_power(vars, o_.beta1, "beta1_power", loc);
    beta2_power_ = make_power(vars, o_.beta2, "beta2_power", loc);
  }
  for (const Variable& v : vars) {
    slot(v, "m", loc);
    slot(v, "v", loc);
  }
}

// From the new averages to the step of the variable.
Node& LAMBOptimizer::step(const Tensor& m, const Tensor& s, const std::vector<Node*>& writes,
                          const Variable& v, Loc loc) {
  const Tensor power1 = cast(beta1_power_.value(loc), v.dtype(), {}, loc);
  const Tensor power2 = cast(beta2_power_.value(loc), v.dtype(), {}, loc);
  const Tensor m_hat = divide(m, subtract(1.0, power1, "sub", loc), {}, loc);
  const Tensor s_hat = divide(s, subtract(1.0, power2, "sub", loc), {}, loc);
  const Tensor w = v.value(loc);
  Tensor r = divide(m_hat, add(sqrt(s_hat, {}, loc), Tensor(hyper("epsilon", v, loc)), "add", loc), {}, loc);
  if (o_.weight_decay != 0 && !contains_any(v.name(), o_.exclude_from_weight_decay))
    r = add(r, multiply(w, Tensor(hyper("weight_decay", v, loc)), "mul", loc), "add", loc);
  Tensor rate = hyper("learning_rate", v, loc);
  if (!contains_any(v.name(), o_.exclude_from_layer_adaptation)) {
    const Tensor w_norm = norm(w, {}, {}, loc), r_norm = norm(r, {}, {}, loc);
    const Tensor ratio = where_positive(w_norm, r_norm, div_no_nan(w_norm, r_norm, {}, loc), loc);
    rate = multiply(rate, ratio, "mul", loc);
  }
  std::vector<Node*> all{&assign_sub_op(v, multiply(rate, r, "mul", loc), {}, loc)};
  all.insert(all.end(), writes.begin(), writes.end());
  return group(v.graph(), all, {}, loc);
}

Node& LAMBOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  const Tensor g = grad;
  auto average = [&](const Variable& slot, const Tensor& beta, const Tensor& x) {
    return add(multiply(slot.value(loc), beta, "mul", loc),
               multiply(x, subtract(1.0, beta, "sub", loc), "mul", loc), "add", loc);
  };
  const Variable slot_m = get_slot(v, "m"), slot_v = get_slot(v, "v");
  const Tensor m = average(slot_m, hyper("beta1", v, loc), g);
  const Tensor s = average(slot_v, hyper("beta2", v, loc), multiply(g, g, "mul", loc));
  return step(m, s, {&assign_op(slot_m, m, {}, loc), &assign_op(slot_v, s, {}, loc)}, v, loc);
}

Node& LAMBOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  const Tensor g = grad.values;
  std::vector<Node*> writes;
  const Tensor m = average_rows(get_slot(v, "m"), hyper("beta1", v, loc), grad.indices, g, writes, loc);
  const Tensor s = average_rows(get_slot(v, "v"), hyper("beta2", v, loc), grad.indices,
                                multiply(g, g, "mul", loc), writes, loc);
  return step(m, s, writes, v, loc);
}

std::vector<Node*> LAMBOptimizer::finish(const std::vector<Node*>& updates, Loc loc) {
  ControlDependencies after(beta1_power_.graph(), updates);
  ColocateWith beside(beta1_power_.graph(), &beta1_power_.node());
  return {&scale_power(beta1_power_, hyper("beta1", beta1_power_, loc), loc),
          &scale_power(beta2_power_, hyper("beta2", beta2_power_, loc), loc)};
}

}  // namespace sluice::dsl::train
