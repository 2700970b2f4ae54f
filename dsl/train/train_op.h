#pragma once
// create_train_op and the helpers that work on gradients (graph-and-training §5.1, 5.2). The builder's
// thread.
//
//   MomentumOptimizer opt(0.1, 0.9);
//   Tensor train_op = create_train_op(losses::get_total_loss(g), opt, {.transform_grads_fn =
//   clip_gradient_norms_fn(5)}); float loss = session.run({train_op})[0].item<float>();

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/train/global_step.h"
#include "dsl/train/optimizer.h"

namespace sluice::dsl::train {

/// Which step create_train_op counts: the graph's own (made where there is none), none, or a variable.
class GlobalStep {
 public:
  GlobalStep() = default;
  GlobalStep(Variable v) : variable_(std::move(v)), use_default_(false) {}
  static GlobalStep none() { return GlobalStep(Variable()); }
  Variable resolve(Graph& g, Loc loc) const {
    return use_default_ ? get_or_create_global_step(g, loc) : variable_;
  }

 private:
  Variable variable_;
  bool use_default_ = true;
};

using TransformGrads = std::function<GradsAndVars(const GradsAndVars&)>;

struct TrainOpOptions {
  GlobalStep global_step = {};
  std::optional<std::vector<Node*>> update_ops = {};  // default: the UPDATE_OPS collection
  std::optional<std::vector<Variable>> variables_to_train = {};
  TransformGrads transform_grads_fn = {};  // sees variables without a gradient too
  bool summarize_gradients = false;
  Gate gate_gradients = Gate::kOp;
  passes::AggregationMethod aggregation_method = passes::AggregationMethod::kAddN;
  bool colocate_gradients_with_ops = false;
  bool check_numerics = true;
  /// TensorFlow's order lets a step with a bad loss change variables before it fails. With this, loss,
  /// gradients and hyper-parameters are checked first, and neither variables nor moving averages change when
  /// one is not finite.
  bool guard_updates = false;
};

/// A tensor whose value is the loss and whose computation runs the update ops, the gradients, the variable
/// updates and the step counter; it joins TRAIN_OP.
Tensor create_train_op(const Tensor& total_loss, Optimizer& optimizer, const TrainOpOptions& o = {},
                       Loc loc = Loc::current());

/// Per non-null gradient a histogram `<var>_gradient` and a scalar `<var>_gradient_norm` in the open name
/// scope.
std::vector<Tensor> add_gradients_summaries(const GradsAndVars& grads_and_vars, Loc loc = Loc::current());
/// Each gradient clipped by its own norm; none stays none.
GradsAndVars clip_gradient_norms(const GradsAndVars& grads_and_vars, double max_norm,
                                 Loc loc = Loc::current());
TransformGrads clip_gradient_norms_fn(double max_norm);

/// A variable, or its op's name.
struct MultiplierKey {
  MultiplierKey(const Variable& v) : variable(v) {}
  MultiplierKey(const char* n) : name(n) {}
  MultiplierKey(std::string n) : name(std::move(n)) {}
  Variable variable;
  std::string name;
};
using GradientMultipliers = std::vector<std::pair<MultiplierKey, Operand>>;
/// Gradients of the listed variables times their coefficient; a Variable key wins over a name.
/// InvalidArgument for an empty list, and for a listed variable without a gradient; names that fit no pair
/// are warned about with near matches.
GradsAndVars multiply_gradients(const GradsAndVars& grads_and_vars, const GradientMultipliers& multipliers,
                                Loc loc = Loc::current());

}  // namespace sluice::dsl::train
