#pragma once
// Loss scaling for half precision (benchmark-tool §12): the loss is multiplied before it is differentiated
// and each gradient divided right after, before any aggregation or clipping. The dynamic form keeps its scale
// in variables and leaves out steps whose gradients are not finite. The builder's thread.
//
//   MomentumOptimizer momentum(0.1, 0.9);
//   LossScaleOptimizer opt(momentum, DynamicLossScale{});
//   Node& step = opt.minimize(loss, get_or_create_global_step(g));

#include <optional>

#include "dsl/train/optimizer_wrapper.h"

namespace sluice::dsl::train {

struct DynamicLossScale {
  double initial = 128;
  /// After more than this many steps with finite gradients in a row the scale doubles.
  int increment_every_n = 1000;
  /// Whether the global step also counts steps that are left out.
  bool count_skipped_steps = false;
};

class LossScaleOptimizer : public OptimizerWrapper {
 public:
  /// A fixed scale; 1 adds no ops. InvalidArgument unless it is positive.
  LossScaleOptimizer(Optimizer& inner, double scale);
  /// A gradient that is not finite: the scale halves and nothing is updated. Variables "loss_scale" (float)
  /// and "loss_scale_normal_steps" (int32), not trainable, in GLOBAL_VARIABLES.
  LossScaleOptimizer(Optimizer& inner, const DynamicLossScale& dynamic);

  GradsAndVars compute_gradients(const Tensor& loss, const ComputeOptions& o = {},
                                 Loc loc = Loc::current()) override;
  Node& apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step = {},
                        const std::string& name = {}, Loc loc = Loc::current()) override;

  /// Empty for a fixed scale, and before compute_gradients.
  Variable loss_scale() const { return scale_; }
  Variable normal_steps() const { return normal_steps_; }

 private:
  void make_variables(Graph& g, Loc loc);
  Tensor all_finite(const GradsAndVars& pairs, Loc loc) const;

  double fixed_ = 1;
  std::optional<DynamicLossScale> dynamic_;
  Variable scale_, normal_steps_;
};

}  // namespace sluice::dsl::train
