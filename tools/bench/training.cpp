#include "tools/bench/training.h"

#include <algorithm>
#include <memory>

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/train/optimizer.h"
#include "dsl/train/schedule.h"
#include "graph/support/check.h"
#include "passes/clip_gradients.h"

namespace sluice::bench {

namespace {

using namespace dsl;

// The model's schedule: steps, and the linear rise before them.
Tensor scheduled_rate(const models::LearningSchedule& schedule, const Variable& global_step) {
  const std::vector<double> boundaries(schedule.boundaries.begin(), schedule.boundaries.end());
  const Tensor rate = train::piecewise_constant(global_step, boundaries, schedule.rates);
  if (schedule.warmup_steps == 0) return rate;
  const auto warmup = static_cast<double>(schedule.warmup_steps);
  const Tensor step = cast(global_step, DType::kFloat);
  return where(step < warmup, step * (schedule.rates[0] / warmup), rate);
}

std::unique_ptr<train::Optimizer> make_optimizer(const OptimizerSettings& o, const Tensor& rate) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return std::make_unique<train::GradientDescentOptimizer>(rate);
    case OptimizerKind::kMomentum:
      return std::make_unique<train::MomentumOptimizer>(rate, o.momentum,
                                                        train::MomentumOptions{.use_nesterov = true});
    case OptimizerKind::kRmsprop:
      return std::make_unique<train::RMSPropOptimizer>(
          rate, train::RMSPropOptions{
                    .decay = o.rmsprop_decay, .momentum = o.rmsprop_momentum, .epsilon = o.rmsprop_epsilon});
    case OptimizerKind::kAdam:
      return std::make_unique<train::AdamOptimizer>(rate);
  }
  throw_internal("optimizer kind", __FILE__, __LINE__, "unknown optimizer");
}

}  // namespace

Tensor total_loss(const Settings& s, const Tensor& logits, const Tensor& labels) {
  Graph& g = logits.graph();
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy_with_logits(labels, logits, "xentropy"), {},
                                  {.keepdims = false, .name = "xentropy_mean"});
  if (s.optimizer.weight_decay == 0) return loss;
  std::vector<Tensor> norms;
  for (const Variable& v : trainable_variables(g))
    if (v.name().find("batchnorm") == std::string::npos) norms.push_back(l2_loss(v));
  return add(loss, add_n(norms, "l2_norms") * s.optimizer.weight_decay, "total_loss");
}

Tensor learning_rate(const Settings& s, const Variable& global_step) {
  Graph& g = global_step.graph();
  graph::NameScope scope(g, "learning_rate");
  const OptimizerSettings& o = s.optimizer;
  if (!o.learning_rate) {
    const models::LearningSchedule schedule = s.model->schedule(s.examples(), s.batch);
    if (schedule.boundaries.empty()) return constant(g, schedule.rates[0]);
    return scheduled_rate(schedule, global_step);
  }
  if (o.epochs_per_decay <= 0 || o.decay_factor <= 0) return constant(g, *o.learning_rate);
  // learning_rate · factor ^ floor(step / decay_steps), not below the minimum.
  const double batches = static_cast<double>(s.examples()) / static_cast<double>(s.batch);
  const auto decay_steps = std::max<int64_t>(1, static_cast<int64_t>(batches * o.epochs_per_decay));
  const Tensor rate = train::exponential_decay(
      *o.learning_rate, global_step, static_cast<double>(decay_steps), o.decay_factor, /*staircase=*/true);
  return o.minimum_rate != 0 ? maximum(rate, o.minimum_rate) : rate;
}

Node& make_train_op(const Settings& s, const Tensor& loss, const Variable& global_step) {
  Graph& g = loss.graph();
  const std::unique_ptr<train::Optimizer> optimizer =
      make_optimizer(s.optimizer, learning_rate(s, global_step));
  train::GradsAndVars gradients = optimizer->compute_gradients(loss, {.gate_gradients = train::Gate::kNone});
  if (s.optimizer.gradient_clip) {
    graph::NameScope scope(g, "clip");
    const double limit = *s.optimizer.gradient_clip;
    for (train::GradVar& gv : gradients)
      if (!gv.grad.none()) gv.grad = passes::clip_by_value(gv.grad, -limit, limit);
  }
  std::vector<Node*> parts = {&optimizer->apply_gradients(gradients, global_step)};
  for (const graph::GraphElement& update : g.collections().elements(graph::keys::kUpdateOps))
    parts.push_back(update.node);
  return group(g, parts, "train_op");
}

}  // namespace sluice::bench
