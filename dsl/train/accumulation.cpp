#include "dsl/train/accumulation.h"

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/index.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"
#include "dsl/train/apply_if.h"
#include "dsl/train/optimizer_internal.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::GraphElement;
using graph::NameScope;

namespace {

VariableOptions untrained(DType dtype, bool resource) {
  VariableOptions o;
  o.dtype = dtype;
  o.initializer = zeros_initializer();
  o.trainable = false;
  o.use_resource = resource;
  o.regularizer = [](const Variable&) { return Tensor(); };
  return o;
}

}  // namespace

GradientAccumulationOptimizer::GradientAccumulationOptimizer(Optimizer& inner, int steps,
                                                             const AccumulationOptions& o)
    : OptimizerWrapper(inner, inner.name()), steps_(steps), o_(o) {
  SLUICE_REQUIRE(steps >= 1, Code::kInvalidArgument, "Gradients accumulate over at least 1 step, got ",
                 steps);
}

Variable GradientAccumulationOptimizer::accumulator(const Variable& v) const {
  for (const auto& [variable, sum] : sums_)
    if (variable == v) return sum;
  return {};
}

Node& GradientAccumulationOptimizer::accumulate(const GradsAndVars& grads_and_vars, Loc loc) {
  std::vector<Node*> adds;
  Graph* g = nullptr;
  for (const GradVar& p : grads_and_vars) {
    if (p.grad.none()) continue;
    g = &p.var.graph();
    Variable sum = accumulator(p.var);
    if (!sum) {
      VariableScope scope(*g, VariableScope::Default{p.var.name() + "/" + o_.name});
      ColocateWith beside(*g, &p.var.node());
      sum = get_variable(*g, "", p.var.shape().dims(), untrained(p.var.dtype(), p.var.is_resource()), loc);
      keep_slice(p.var, sum);
      sums_.emplace_back(p.var, sum);
    }
    NameScope scope(*g, o_.name);
    adds.push_back(p.grad.is_slices()
                       ? &scatter_add(sum, p.grad.slices.indices, p.grad.slices.values, {}, loc)
                       : &assign_add_op(sum, p.grad.dense, {}, loc));
  }
  SLUICE_REQUIRE_AT(loc, g, Code::kInvalidArgument, "No gradients provided for any variable.");
  return group(*g, adds, o_.name + "/accumulate", loc);
}

Node& GradientAccumulationOptimizer::apply(const Variable& global_step, const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !sums_.empty(), Code::kFailedPrecondition,
                    "GradientAccumulationOptimizer::apply needs accumulate to be called first");
  Graph& g = sums_[0].first.graph();
  GradsAndVars pairs;
  {
    NameScope scope(g, o_.name);
    for (const auto& [v, sum] : sums_) {
      Tensor total = sum.read_value({}, loc);
      if (o_.average && steps_ > 1) total = multiply(total, 1.0 / steps_, "mul", loc);
      pairs.push_back({GradValue(total.output()), v});
    }
  }
  Node& update = inner_.apply_gradients(pairs, global_step, name, loc);
  ControlDependencies after(g, {&update});
  NameScope scope(g, o_.name);
  std::vector<Node*> done{&update};
  for (const auto& [v, sum] : sums_)
    done.push_back(&assign_op(sum, zeros(g, sum.shape().dims(), sum.dtype(), {}, loc), {}, loc));
  return group(g, done, "apply", loc);
}

Node& GradientAccumulationOptimizer::apply_gradients(const GradsAndVars& grads_and_vars,
                                                     const Variable& global_step, const std::string& name,
                                                     Loc loc) {
  Node& added = accumulate(grads_and_vars, loc);
  Graph& g = added.graph();
  if (!counter_)
    counter_ = get_variable(g, "gradient_accumulation_step", {}, untrained(DType::kInt64, true), loc);
  ControlDependencies after(g, {&added});
  const Tensor count = assign_add(counter_, 1, {}, loc);
  const Tensor due = equal(floormod(count, steps_, {}, loc), 0, {}, loc);
  Node& updated = apply_if(
      due, [&]() -> Node& { return apply(global_step, name, loc); }, loc);
  g.collections().add_unique(graph::keys::kTrainOp, GraphElement{&updated, -1});
  return updated;
}

}  // namespace sluice::dsl::train
