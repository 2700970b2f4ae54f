#pragma once
// Gradients summed over several steps before one update, for batches larger than memory holds. Sums live in
// variables `<w>/GradientAccumulation` (saved, so training resumes between two updates); sparse gradients add
// to their rows. The builder's thread.
//
//   AdamOptimizer adam;
//   GradientAccumulationOptimizer opt(adam, 4);
//   Node& step = opt.minimize(loss, global_step);       // every 4th run updates and counts
//
// A program that drives its own loop saves the copies of apply_if: run accumulate(…) n times, then apply(…).

#include <string>
#include <vector>

#include "dsl/train/optimizer_wrapper.h"

namespace sluice::dsl::train {

struct AccumulationOptions {
  bool average = true;  // the mean of the gradients, not their sum
  std::string name = "GradientAccumulation";
};

class GradientAccumulationOptimizer : public OptimizerWrapper {
 public:
  /// InvalidArgument unless steps >= 1.
  GradientAccumulationOptimizer(Optimizer& inner, int steps, const AccumulationOptions& o = {});

  /// One op for each run: it adds, and every `steps` runs updates, empties the sums and counts the step.
  Node& apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step = {},
                        const std::string& name = {}, Loc loc = Loc::current()) override;

  /// Adds the gradients to the sums: the op that does it.
  Node& accumulate(const GradsAndVars& grads_and_vars, Loc loc = Loc::current());
  /// Updates by the sums (over `steps` where they are averaged) and empties them. FailedPrecondition before
  /// accumulate.
  Node& apply(const Variable& global_step = {}, const std::string& name = {}, Loc loc = Loc::current());
  /// The sum of a variable; empty before accumulate.
  Variable accumulator(const Variable& v) const;
  /// Runs of apply_gradients so far, an int64 variable; empty before it.
  Variable counter() const { return counter_; }

 private:
  int steps_;
  AccumulationOptions o_;
  std::vector<std::pair<Variable, Variable>> sums_;  // variable, its sum; in the order given
  Variable counter_;
};

}  // namespace sluice::dsl::train
