#pragma once
// Constraints: what a variable is put back into after each optimizer step (tf.Variable's `constraint`), as a
// non-negative or norm-limited weight needs. Kept with the graph, not in graph files, as in TensorFlow. The
// builder's thread.
//
//   set_constraint(w, [](const Tensor& x) { return maximum(x, 0.0); });

#include <functional>

#include "dsl/variable.h"

namespace sluice::dsl::train {

/// From the updated value to the value the variable takes; same shape and type.
using Constraint = std::function<Tensor(const Tensor&)>;

/// Replaces the one before. Optimizers obey it for updates made from now on.
void set_constraint(const Variable& v, Constraint constraint);
/// Empty when there is none.
Constraint constraint_of(const Variable& v);

}  // namespace sluice::dsl::train
