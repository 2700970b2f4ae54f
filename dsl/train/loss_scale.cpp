#include "dsl/train/loss_scale.h"

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"
#include "dsl/train/apply_if.h"
#include "passes/emit.h"

namespace sluice::dsl::train {

using graph::ControlDependencies;
using graph::GraphElement;
using graph::NameScope;

namespace {

Tensor values_of(const GradValue& g) { return g.is_slices() ? g.slices.values : g.dense; }

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(Optimizer& inner, double scale)
    : OptimizerWrapper(inner, inner.name()), fixed_(scale) {
  SLUICE_REQUIRE(scale > 0, Code::kInvalidArgument, "The loss scale must be positive, got ", scale);
}

LossScaleOptimizer::LossScaleOptimizer(Optimizer& inner, const DynamicLossScale& dynamic)
    : OptimizerWrapper(inner, inner.name()), dynamic_(dynamic) {
  SLUICE_REQUIRE(dynamic.initial > 0, Code::kInvalidArgument, "The loss scale must be positive, got ",
                 dynamic.initial);
  SLUICE_REQUIRE(dynamic.increment_every_n >= 0, Code::kInvalidArgument,
                 "increment_every_n can't be negative, got ", dynamic.increment_every_n);
}

void LossScaleOptimizer::make_variables(Graph& g, Loc loc) {
  if (scale_) return;
  VariableOptions o;
  o.trainable = false;
  o.regularizer = [](const Variable&) { return Tensor(); };
  o.initializer = constant_initializer(dynamic_->initial);
  scale_ = get_variable(g, "loss_scale", {}, o, loc);
  o.dtype = DType::kInt32;
  o.initializer = zeros_initializer();
  normal_steps_ = get_variable(g, "loss_scale_normal_steps", {}, o, loc);
}

GradsAndVars LossScaleOptimizer::compute_gradients(const Tensor& loss, const ComputeOptions& o, Loc loc) {
  if (!dynamic_ && fixed_ == 1) return inner_.compute_gradients(loss, o, loc);
  SLUICE_REQUIRE_AT(loc, loss, Code::kInvalidArgument, "compute_gradients: the loss is an empty tensor");
  Graph& g = loss.graph();
  Tensor scale, inverse;
  Tensor scaled;
  if (dynamic_) {
    make_variables(g, loc);
    NameScope scope(g, "loss_scaling");
    scale = scale_.value(loc);
    inverse = divide(1.0, scale, {}, loc);
    scaled = multiply(loss, cast(scale, loss.dtype(), {}, loc), "scaled_loss", loc);
  } else {
    NameScope scope(g, "loss_scaling");
    scaled = multiply(loss, fixed_, "scaled_loss", loc);
  }
  GradsAndVars pairs = inner_.compute_gradients(scaled, o, loc);
  NameScope scope(g, "loss_scaling");
  for (GradVar& p : pairs) {
    if (p.grad.none()) continue;
    const Tensor values = values_of(p.grad);
    const Operand by =
        dynamic_ ? Operand(cast(inverse, values.dtype(), {}, loc), loc) : Operand(1 / fixed_, loc);
    const Tensor plain = multiply(values, by, "mul", loc);
    if (p.grad.is_slices())
      p.grad.slices.values = plain;
    else
      p.grad = GradValue(plain.output());
  }
  return pairs;
}

Tensor LossScaleOptimizer::all_finite(const GradsAndVars& pairs, Loc loc) const {
  std::vector<Operand> each;
  for (const GradVar& p : pairs) {
    if (p.grad.none()) continue;
    const Tensor values = values_of(p.grad);
    const Tensor finite = passes::Emit{values.graph(), loc}.op("IsFinite", {values});
    each.emplace_back(reduce_all(finite, {}, {}, loc));
  }
  if (each.size() == 1) return each[0].tensor();
  return reduce_all(stack(each, 0, {}, loc), {}, {}, loc);
}

Node& LossScaleOptimizer::apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step,
                                          const std::string& name, Loc loc) {
  bool any = false;
  for (const GradVar& p : grads_and_vars) any |= !p.grad.none();
  // A fixed scale is done with its work; without a gradient the inner optimizer says so.
  if (!dynamic_ || !any) return inner_.apply_gradients(grads_and_vars, global_step, name, loc);
  Graph& g = grads_and_vars[0].var.graph();
  make_variables(g, loc);
  const bool count_all = dynamic_->count_skipped_steps && global_step;
  Tensor finite;
  {
    NameScope scope(g, "loss_scaling");
    finite = all_finite(grads_and_vars, loc);
  }
  Node& updated = apply_if(
      finite,
      [&]() -> Node& {
        return inner_.apply_gradients(grads_and_vars, count_all ? Variable() : global_step, name, loc);
      },
      loc);
  ControlDependencies after(g, {&updated});
  NameScope scope(g, "loss_scaling");
  const Tensor scale = scale_.value(loc), steps = normal_steps_.value(loc);
  const Tensor grow = greater_equal(steps, dynamic_->increment_every_n, {}, loc);
  const Tensor kept = where(grow, multiply(scale, 2.0, "mul", loc), scale, {}, loc);
  const Tensor next = where(finite, kept, multiply(scale, 0.5, "mul", loc), {}, loc);
  const Tensor counts = logical_and(finite, logical_not(grow, {}, loc), {}, loc);
  const Tensor counted = where(counts, add(steps, 1, "add", loc), zeros_like(steps, {}, loc), {}, loc);
  std::vector<Node*> done{&updated, &assign_op(scale_, next, {}, loc),
                          &assign_op(normal_steps_, counted, {}, loc)};
  if (count_all) done.push_back(&assign_add_op(global_step, 1, {}, loc));
  Node& all = group(g, done, "train_with_loss_scale", loc);
  g.collections().add_unique(graph::keys::kTrainOp, GraphElement{&all, -1});
  return all;
}

}  // namespace sluice::dsl::train
