#pragma once
// Noise on gradients: what contrib's optimize_loss adds with gradient_noise_scale, and the annealed form that
// dies away with the step. Transforms for create_train_op, or functions of pairs. The builder's thread.
//
//   create_train_op(loss, opt, {.transform_grads_fn = gradient_noise_fn(0.01)});

#include <optional>

#include "dsl/train/train_op.h"

namespace sluice::dsl::train {

/// Each gradient plus scale times a truncated normal of its shape, drawn anew each step; none stays none. A
/// sparse gradient takes noise on its stored rows and stays sparse.
GradsAndVars add_gradient_noise(const GradsAndVars& grads_and_vars, const Operand& scale,
                                std::optional<int64_t> seed = {}, Loc loc = Loc::current());
TransformGrads gradient_noise_fn(const Operand& scale, std::optional<int64_t> seed = {});
/// sqrt(eta / (1 + step)^gamma): a scale that dies away.
Tensor annealed_noise_scale(const Operand& global_step, double eta = 0.01, double gamma = 0.55,
                            Loc loc = Loc::current());

}  // namespace sluice::dsl::train
