#pragma once
// The training half of a run's graph: loss with its L2 term, learning rate, gradients, clipping and update
// (benchmark-tool §11, §13, §14). Adds nodes to the graph of its arguments; the builder's thread.

#include "dsl/variable.h"
#include "tools/bench/settings.h"

namespace sluice::bench {

/// Mean cross-entropy, plus weight_decay · Σ ½‖v‖² over the trainable variables outside batch norms.
dsl::Tensor total_loss(const Settings& settings, const dsl::Tensor& logits, const dsl::Tensor& labels);

/// The rate at the value that `global_step` has before the step's own increment.
dsl::Tensor learning_rate(const Settings& settings, const dsl::Variable& global_step);

/// One op that updates variables, moving statistics and the step counter.
graph::Node& make_train_op(const Settings& settings, const dsl::Tensor& loss,
                           const dsl::Variable& global_step);

}  // namespace sluice::bench
