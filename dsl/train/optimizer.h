#pragma once
// Optimizers as nodes: compute_gradients, apply_gradients, minimize (graph-and-training §4). Slots are
// variables under TensorFlow's names ("w/Momentum", "w/Adam", "w/Adam_1") and live in the graph; an optimizer
// object holds the handles. Hyper-parameters are numbers or tensors; a tensor is read every step. The
// builder's thread.
//
//   MomentumOptimizer opt(0.1, 0.9);
//   Node& step = opt.minimize(loss, get_or_create_global_step(g));

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"
#include "dsl/variable.h"
#include "passes/gradients.h"

namespace sluice::dsl::train {

struct GradVar {
  GradValue grad;  // none where the loss does not depend on the variable
  Variable var;
};
using GradsAndVars = std::vector<GradVar>;

/// kNone: an update may start while another gradient of the same op still reads the old value; kOp: all
/// gradients of an op together; kGraph: no update before every gradient is there.
enum class Gate { kNone = 0, kOp = 1, kGraph = 2 };

struct ComputeOptions {
  std::optional<std::vector<Variable>> var_list = {};  // default: the trainable variables
  Gate gate_gradients = Gate::kOp;
  passes::AggregationMethod aggregation_method = passes::AggregationMethod::kAddN;
  bool colocate_gradients_with_ops = false;
  GradValue grad_loss = {};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// (gradient, variable) in the order of the variables. InvalidArgument "No variables to optimize.", or for
  /// a loss or variable that is not floating point.
  virtual GradsAndVars compute_gradients(const Tensor& loss, const ComputeOptions& o = {},
                                         Loc loc = Loc::current());
  /// The op that updates the variables, and then adds 1 to `global_step` where one is given; it joins
  /// TRAIN_OP. InvalidArgument when there is nothing to apply. A variable with a constraint
  /// (dsl/train/constraint.h) is put back into it after its update; FailedPrecondition "Cannot use a
  /// constraint function on a sparse variable." for a sparse gradient.
  virtual Node& apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step = {},
                                const std::string& name = {}, Loc loc = Loc::current());
  /// Both. Warns once a graph when UPDATE_OPS exist that nothing runs: create_train_op runs them. When no
  /// variable has a gradient the error names the ops that cut each variable off.
  Node& minimize(const Tensor& loss, const Variable& global_step = {}, const ComputeOptions& o = {},
                 const std::string& name = {}, Loc loc = Loc::current());

  const std::string& name() const { return name_; }
  /// Empty when the slot does not exist (yet).
  virtual Variable get_slot(const Variable& var, const std::string& slot) const;
  /// Logical names, sorted ("momentum", "rms").
  virtual std::vector<std::string> get_slot_names() const;
  /// The numbers and tensors that steer the updates, with their names.
  virtual std::vector<std::pair<std::string, Operand>> hyper_parameters() const = 0;

 protected:
  Optimizer(std::string name, bool use_locking) : name_(std::move(name)), use_locking_(use_locking) {}

  virtual void create_slots(const std::vector<Variable>& vars, Loc loc) = 0;
  /// Makes what all updates share, in the optimizer's scope, once the hyper-parameters are tensors.
  virtual void prepare(Graph&, Loc) {}
  /// Updates `v` by a dense gradient.
  virtual Node& apply_dense(const Output& grad, const Variable& v, Loc loc) = 0;
  /// Updates the rows of `v`; the indices are unique unless merge_duplicates() says they need not be.
  virtual Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) = 0;
  virtual bool merge_duplicates() const { return true; }
  /// Ops that run after all updates (beta powers).
  virtual std::vector<Node*> finish(const std::vector<Node*>& updates, Loc loc);

  /// Makes (or finds) a slot: shape and type of `v`, filled with `value`, beside it. It is named after the
  /// optimizer, or after `op_name` where one is given.
  Variable slot(const Variable& v, const std::string& slot, Loc loc, double value = 0.0,
                const std::string& op_name = {});
  /// The hyper-parameter as a tensor of `v`'s type, inside the open scope.
  Output hyper(const std::string& name, const Variable& v, Loc loc);
  /// An update op: resource form `Resource<op>` or ref form `<op>` by the kind of the variable.
  Node& update_op(const std::string& op, const Variable& v, std::vector<Output> inputs, AttrMap attrs,
                  Loc loc, const std::string& name = {});

 private:
  IndexedSlices unique_rows(const IndexedSlices& grad, Loc loc) const;
  Node& update_one(const GradVar& gv, Loc loc);

  std::string name_;
  bool use_locking_;
  std::map<std::string, std::map<const Node*, Variable>> slots_;
  std::map<std::string, Output> hyper_;  // tensors of the apply_gradients call in progress
};

/// w -= lr·g.
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(const Operand& learning_rate, bool use_locking = false,
                                    std::string name = "GradientDescent");
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>&, Loc) override {}
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;
  // Subtracting rows one by one gives what subtracting their sum gives.
  bool merge_duplicates() const override { return false; }

 private:
  Operand learning_rate_;
};

struct MomentumOptions {
  bool use_nesterov = false;
  bool use_locking = false;
  std::string name = "Momentum";
};
/// a = momentum·a + g; w -= lr·a (Nesterov: w -= lr·g + lr·momentum·a). Slot "momentum".
class MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(const Operand& learning_rate, const Operand& momentum, const MomentumOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  Operand learning_rate_, momentum_;
  bool use_nesterov_;
};

struct RMSPropOptions {
  double decay = 0.9, momentum = 0.0, epsilon = 1e-10;
  bool centered = false;
  bool use_locking = false;
  std::string name = "RMSProp";
};
/// ms += (g² - ms)(1 - decay); mom = momentum·mom + lr·g/sqrt(ms + epsilon); w -= mom. Slots "rms" (starts at
/// 1), "mg" where centered, "momentum".
class RMSPropOptimizer : public Optimizer {
 public:
  explicit RMSPropOptimizer(const Operand& learning_rate, const RMSPropOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  std::vector<Output> slots_and_hypers(const Variable& v, Loc loc);
  Operand learning_rate_;
  RMSPropOptions o_;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool use_locking = false;
  std::string name = "Adam";
};
/// m, v with bias correction folded into the rate; epsilon outside it. Slots "m", "v"; variables beta1_power
/// and beta2_power beside the variable whose name sorts first. Sparse gradients decay every row of m and v
/// and move every row of the variable, as in TensorFlow.
class AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(const Operand& learning_rate = Operand(0.001), const AdamOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;
  /// Empty before the first apply_gradients.
  Variable beta1_power() const { return beta1_power_; }
  Variable beta2_power() const { return beta2_power_; }

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;
  std::vector<Node*> finish(const std::vector<Node*>& updates, Loc loc) override;

 private:
  Operand learning_rate_;
  AdamOptions o_;
  Variable beta1_power_, beta2_power_;
};

}  // namespace sluice::dsl::train
