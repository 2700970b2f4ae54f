#pragma once
// Moving averages of variables and tensors (graph-and-training §4.5), and training that keeps averages of the
// weights for evaluation. Shadows are variables under TensorFlow's names ("w/ExponentialMovingAverage"). The
// builder's thread.
//
//   ExponentialMovingAverage ema(0.999, {.num_updates = step});
//   ControlDependencies after(g, {&train_op});
//   Node& averaged = ema.apply();                        // run this
//   Saver for_eval(g, {.variables = ema.variables_to_restore(g)});

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dsl/train/optimizer_wrapper.h"
#include "dsl/train/saver.h"

namespace sluice::dsl::train {

/// variable -= (1 - decay)·(variable - value): the op that does it, and so bears the scope's name
/// ("AssignMovingAvg"). With zero_debias (TensorFlow's default) the variable is taken to have started at 0:
/// `<variable>/biased` holds the plain average, `<variable>/local_step` counts, and the variable becomes
/// biased / (1 - decayˢᵗᵉᵖ).
Node& assign_moving_average(const Variable& v, const Operand& value, const Operand& decay, bool zero_debias,
                            const std::string& name = {}, Loc loc = Loc::current());

struct MovingAverageOptions {
  /// The decay is min(decay, (1 + n)/(10 + n)) where the number of updates n is given.
  std::optional<Operand> num_updates = {};
  bool zero_debias = false;  // of averages of tensors, which start at 0
  std::string name = "ExponentialMovingAverage";
};

class ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(const Operand& decay, const MovingAverageOptions& o = {});

  /// An op that updates the averages of the variables (default: the trainable ones) and tensors. The shadow
  /// of a variable starts at its value and the variable joins MOVING_AVERAGE_VARIABLES; that of a tensor
  /// starts at 0. InvalidArgument "The variables must be half, float, or double: …" for another type.
  Node& apply(Graph& g, const std::optional<std::vector<Variable>>& variables = {},
              const std::vector<Tensor>& tensors = {}, Loc loc = Loc::current());
  /// The shadow; empty before apply.
  Variable average(const Variable& v) const;
  Variable average(const Tensor& t) const;
  /// The name of the shadow, or the one that it would get.
  std::string average_name(const Variable& v) const;
  /// What a Saver takes to load averages into the variables themselves: (average's name, variable) for the
  /// trainable and moving-average variables (or for `averaged`), and every other global variable under its
  /// own name. Sorted by name.
  std::vector<std::pair<std::string, Variable>> variables_to_restore(
      Graph& g, const std::optional<std::vector<Variable>>& averaged = {}) const;
  const std::string& name() const { return o_.name; }

 private:
  Variable shadow_of(const Variable& v, Loc loc);
  Variable shadow_of(const Tensor& t, Loc loc);

  Operand decay_;
  MovingAverageOptions o_;
  std::unordered_map<Output, Variable, graph::OutputHash>
      averages_;  // by the variable's handle, or the tensor
};

struct MovingAverageOptimizerOptions {
  double average_decay = 0.9999;
  std::optional<Operand> num_updates = {};
  /// Averages are taken after the update; otherwise whenever the variable is read during it.
  bool sequential_update = true;
};
/// Another optimizer whose variables are averaged at each step. Train and evaluate with one set of names:
/// swapping_saver writes each average under its variable's name and the other way round, so that a plain
/// Saver loads averages in an evaluation. Holds a reference to `inner`, which must outlive it.
class MovingAverageOptimizer : public OptimizerWrapper {
 public:
  explicit MovingAverageOptimizer(Optimizer& inner, const MovingAverageOptimizerOptions& o = {});

  /// Returns the group "train_with_avg".
  Node& apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step = {},
                        const std::string& name = {}, Loc loc = Loc::current()) override;
  const ExponentialMovingAverage& averages() const { return ema_; }

  /// The saver's variables with names and averages swapped. FailedPrecondition "Must call apply_gradients or
  /// minimize before creating the swapping_saver"; InvalidArgument "Variable to swap … is not in variables to
  /// save." when a list lacks one of a pair.
  std::vector<std::pair<std::string, Variable>> swapped_variables(
      const std::optional<std::vector<Variable>>& variables = {}) const;
  /// A saver of them. Options other than the variables are taken from `o`.
  Saver swapping_saver(const std::optional<std::vector<Variable>>& variables = {}, SaverOptions o = {},
                       Loc loc = Loc::current()) const;

 private:
  ExponentialMovingAverage ema_;
  bool sequential_;
  Graph* graph_ = nullptr;                   // of apply_gradients
  std::map<std::string, std::string> swap_;  // a variable's name to its average's, and back
};

}  // namespace sluice::dsl::train
