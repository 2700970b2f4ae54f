// Adagrad, AdagradDA, Adadelta, Ftrl and the proximal two: slots and update ops. What is computed stands in
// the header.
#include "dsl/train/optimizers_more.h"

#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"

namespace sluice::dsl::train {

namespace {

void require_positive(double value, const char* what) {
  SLUICE_REQUIRE(value > 0, Code::kInvalidArgument, what, " must be positive: ", value);
}
void require_not_negative(double value, const char* what) {
  SLUICE_REQUIRE(value >= 0, Code::kInvalidArgument, what, " ", value, " needs to be positive or zero");
}

std::vector<Output> joined(std::vector<Output> a, const std::vector<Output>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

AdagradOptimizer::AdagradOptimizer(const Operand& learning_rate, const AdagradOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {
  require_positive(o.initial_accumulator_value, "initial_accumulator_value");
}

std::vector<std::pair<std::string, Operand>> AdagradOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_}};
}

void AdagradOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) slot(v, "accumulator", loc, o_.initial_accumulator_value);
}

Node& AdagradOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  return update_op("ApplyAdagrad", v,
                   {v.handle(), get_slot(v, "accumulator").handle(), hyper("learning_rate", v, loc), grad},
                   {}, loc);
}

Node& AdagradOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  return update_op("SparseApplyAdagrad", v,
                   {v.handle(), get_slot(v, "accumulator").handle(), hyper("learning_rate", v, loc),
                    grad.values, grad.indices},
                   {}, loc);
}

AdagradDAOptimizer::AdagradDAOptimizer(const Operand& learning_rate, const Variable& global_step,
                                       const AdagradDAOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), global_step_(global_step), o_(o) {
  require_positive(o.initial_gradient_squared_accumulator_value,
                   "initial_gradient_squared_accumulator_value");
  SLUICE_REQUIRE(global_step, Code::kInvalidArgument, "AdagradDA needs the global step");
}

std::vector<std::pair<std::string, Operand>> AdagradDAOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"l1_regularization_strength", Operand(o_.l1_regularization_strength)},
          {"l2_regularization_strength", Operand(o_.l2_regularization_strength)}};
}

void AdagradDAOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) {
    slot(v, "gradient_accumulator", loc);
    slot(v, "gradient_squared_accumulator", loc, o_.initial_gradient_squared_accumulator_value);
  }
}

void AdagradDAOptimizer::prepare(Graph&, Loc loc) {
  step_ = add(cast(global_step_.read_value({}, loc), DType::kInt64, {}, loc), 1, "add", loc);
}

Node& AdagradDAOptimizer::apply(std::vector<Output> gradient, const char* op, const Variable& v, Loc loc) {
  std::vector<Output> in = joined({v.handle(), get_slot(v, "gradient_accumulator").handle(),
                                   get_slot(v, "gradient_squared_accumulator").handle()},
                                  gradient);
  for (const auto& [name, value] : hyper_parameters()) in.push_back(hyper(name, v, loc));
  in.push_back(step_);
  return update_op(op, v, std::move(in), {}, loc);
}

Node& AdagradDAOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  return apply({grad}, "ApplyAdagradDA", v, loc);
}

Node& AdagradDAOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  return apply({grad.values, grad.indices}, "SparseApplyAdagradDA", v, loc);
}

AdadeltaOptimizer::AdadeltaOptimizer(const Operand& learning_rate, const AdadeltaOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> AdadeltaOptimizer::hyper_parameters() const {
  return {{"lr", learning_rate_}, {"rho", Operand(o_.rho)}, {"epsilon", Operand(o_.epsilon)}};
}

void AdadeltaOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) {
    slot(v, "accum", loc);
    slot(v, "accum_update", loc);
  }
}

std::vector<Output> AdadeltaOptimizer::slots_and_hypers(const Variable& v, Loc loc) {
  std::vector<Output> in{v.handle(), get_slot(v, "accum").handle(), get_slot(v, "accum_update").handle()};
  for (const char* h : {"lr", "rho", "epsilon"}) in.push_back(hyper(h, v, loc));
  return in;
}

Node& AdadeltaOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  return update_op("ApplyAdadelta", v, joined(slots_and_hypers(v, loc), {grad}), {}, loc);
}

Node& AdadeltaOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  return update_op("SparseApplyAdadelta", v, joined(slots_and_hypers(v, loc), {grad.values, grad.indices}),
                   {}, loc);
}

FtrlOptimizer::FtrlOptimizer(const Operand& learning_rate, const FtrlOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {
  require_not_negative(o.initial_accumulator_value, "initial_accumulator_value");
  SLUICE_REQUIRE(o.learning_rate_power <= 0, Code::kInvalidArgument, "learning_rate_power ",
                 o.learning_rate_power, " needs to be negative or zero");
  require_not_negative(o.l1_regularization_strength, "l1_regularization_strength");
  require_not_negative(o.l2_regularization_strength, "l2_regularization_strength");
  require_not_negative(o.l2_shrinkage_regularization_strength, "l2_shrinkage_regularization_strength");
}

std::vector<std::pair<std::string, Operand>> FtrlOptimizer::hyper_parameters() const {
  std::vector<std::pair<std::string, Operand>> h = {
      {"learning_rate", learning_rate_},
      {"l1_regularization_strength", Operand(o_.l1_regularization_strength)},
      {"l2_regularization_strength", Operand(o_.l2_regularization_strength)}};
  if (o_.l2_shrinkage_regularization_strength > 0)
    h.emplace_back("l2_shrinkage_regularization_strength", Operand(o_.l2_shrinkage_regularization_strength));
  h.emplace_back("learning_rate_power", Operand(o_.learning_rate_power));
  return h;
}

void FtrlOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) {
    slot(v, "accum", loc, o_.initial_accumulator_value, o_.accum_name);
    slot(v, "linear", loc, 0, o_.linear_name);
  }
}

Node& FtrlOptimizer::apply(std::vector<Output> gradient, std::string op, const Variable& v, Loc loc) {
  std::vector<Output> in =
      joined({v.handle(), get_slot(v, "accum").handle(), get_slot(v, "linear").handle()}, gradient);
  for (const auto& [name, value] : hyper_parameters()) in.push_back(hyper(name, v, loc));
  if (o_.l2_shrinkage_regularization_strength > 0) op += "V2";
  return update_op(op, v, std::move(in), {}, loc);
}

Node& FtrlOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  return apply({grad}, "ApplyFtrl", v, loc);
}

Node& FtrlOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  return apply({grad.values, grad.indices}, "SparseApplyFtrl", v, loc);
}

ProximalGradientDescentOptimizer::ProximalGradientDescentOptimizer(const Operand& learning_rate,
                                                                   const ProximalOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {}

std::vector<std::pair<std::string, Operand>> ProximalGradientDescentOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"l1_regularization_strength", Operand(o_.l1_regularization_strength)},
          {"l2_regularization_strength", Operand(o_.l2_regularization_strength)}};
}

Node& ProximalGradientDescentOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  std::vector<Output> in{v.handle()};
  for (const auto& [name, value] : hyper_parameters()) in.push_back(hyper(name, v, loc));
  return update_op("ApplyProximalGradientDescent", v, joined(in, {grad}), {}, loc);
}

Node& ProximalGradientDescentOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  std::vector<Output> in{v.handle()};
  for (const auto& [name, value] : hyper_parameters()) in.push_back(hyper(name, v, loc));
  return update_op("SparseApplyProximalGradientDescent", v, joined(in, {grad.values, grad.indices}), {}, loc);
}

ProximalAdagradOptimizer::ProximalAdagradOptimizer(const Operand& learning_rate,
                                                   const ProximalAdagradOptions& o)
    : Optimizer(o.name, o.use_locking), learning_rate_(learning_rate), o_(o) {
  require_positive(o.initial_accumulator_value, "initial_accumulator_value");
}

std::vector<std::pair<std::string, Operand>> ProximalAdagradOptimizer::hyper_parameters() const {
  return {{"learning_rate", learning_rate_},
          {"l1_regularization_strength", Operand(o_.l1_regularization_strength)},
          {"l2_regularization_strength", Operand(o_.l2_regularization_strength)}};
}

void ProximalAdagradOptimizer::create_slots(const std::vector<Variable>& vars, Loc loc) {
  for (const Variable& v : vars) slot(v, "accumulator", loc, o_.initial_accumulator_value);
}

std::vector<Output> ProximalAdagradOptimizer::slots_and_hypers(const Variable& v, Loc loc) {
  std::vector<Output> in{v.handle(), get_slot(v, "accumulator").handle()};
  for (const auto& [name, value] : hyper_parameters()) in.push_back(hyper(name, v, loc));
  return in;
}

Node& ProximalAdagradOptimizer::apply_dense(const Output& grad, const Variable& v, Loc loc) {
  return update_op("ApplyProximalAdagrad", v, joined(slots_and_hypers(v, loc), {grad}), {}, loc);
}

Node& ProximalAdagradOptimizer::apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) {
  return update_op("SparseApplyProximalAdagrad", v,
                   joined(slots_and_hypers(v, loc), {grad.values, grad.indices}), {}, loc);
}

}  // namespace sluice::dsl::train
