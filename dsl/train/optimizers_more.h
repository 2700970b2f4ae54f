#pragma once
// The other optimizers of TensorFlow 1 and its contrib (graph-and-training §4.3, §4.4): formulas, defaults,
// slot names and initial values are TensorFlow's. Sparse gradients touch the rows they name and nothing else,
// unless a class says otherwise. See dsl/train/optimizer.h for what they all do. The builder's thread.
//
//   AdagradOptimizer opt(0.1);
//   Node& step = opt.minimize(loss, get_or_create_global_step(g));

#include <optional>
#include <string>
#include <vector>

#include "dsl/train/optimizer.h"

namespace sluice::dsl::train {

struct AdagradOptions {
  double initial_accumulator_value = 0.1;  // > 0
  bool use_locking = false;
  std::string name = "Adagrad";
};
/// acc += g²; w -= lr·g/sqrt(acc). Slot "accumulator".
class AdagradOptimizer : public Optimizer {
 public:
  explicit AdagradOptimizer(const Operand& learning_rate, const AdagradOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  Operand learning_rate_;
  AdagradOptions o_;
};

struct AdagradDAOptions {
  double initial_gradient_squared_accumulator_value = 0.1;  // > 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0;
  bool use_locking = false;
  std::string name = "AdagradDA";
};
/// Dual averaging: G += g; GG += g²; w = -sign(G)·lr·max(|G| - l1·T, 0)/(l2·T·lr + sqrt(GG)), with T the
/// global step + 1. Slots "gradient_accumulator", "gradient_squared_accumulator".
class AdagradDAOptimizer : public Optimizer {
 public:
  AdagradDAOptimizer(const Operand& learning_rate, const Variable& global_step,
                     const AdagradDAOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  void prepare(Graph& g, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  Node& apply(std::vector<Output> gradient, const char* op, const Variable& v, Loc loc);
  Operand learning_rate_;
  Variable global_step_;
  AdagradDAOptions o_;
  Tensor step_;  // of the apply_gradients call in progress
};

struct AdadeltaOptions {
  double rho = 0.95, epsilon = 1e-8;
  bool use_locking = false;
  std::string name = "Adadelta";
};
/// acc = rho·acc + (1 - rho)·g²; u = sqrt(upd + epsilon)/sqrt(acc + epsilon)·g; w -= lr·u;
/// upd = rho·upd + (1 - rho)·u². Slots "accum", "accum_update".
class AdadeltaOptimizer : public Optimizer {
 public:
  explicit AdadeltaOptimizer(const Operand& learning_rate = Operand(0.001), const AdadeltaOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  std::vector<Output> slots_and_hypers(const Variable& v, Loc loc);
  Operand learning_rate_;
  AdadeltaOptions o_;
};

struct FtrlOptions {
  double learning_rate_power = -0.5;                                      // <= 0
  double initial_accumulator_value = 0.1;                                 // >= 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0;  // >= 0
  double l2_shrinkage_regularization_strength = 0;                        // >= 0
  bool use_locking = false;
  std::string name = "Ftrl";
  std::string accum_name = {}, linear_name = {};  // of the slot variables; default: the optimizer's name
};
/// Follow the regularized leader. Slots "accum", "linear".
class FtrlOptimizer : public Optimizer {
 public:
  explicit FtrlOptimizer(const Operand& learning_rate, const FtrlOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  Node& apply(std::vector<Output> gradient, std::string op, const Variable& v, Loc loc);
  Operand learning_rate_;
  FtrlOptions o_;
};

struct ProximalOptions {
  double l1_regularization_strength = 0, l2_regularization_strength = 0;
  bool use_locking = false;
  std::string name = "ProximalGradientDescent";
};
/// p = w - lr·g; w = sign(p)·max(|p| - lr·l1, 0)/(1 + l2·lr).
class ProximalGradientDescentOptimizer : public Optimizer {
 public:
  explicit ProximalGradientDescentOptimizer(const Operand& learning_rate, const ProximalOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>&, Loc) override {}
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  Operand learning_rate_;
  ProximalOptions o_;
};

struct ProximalAdagradOptions {
  double initial_accumulator_value = 0.1;  // > 0
  double l1_regularization_strength = 0, l2_regularization_strength = 0;
  bool use_locking = false;
  std::string name = "ProximalAdagrad";
};
/// acc += g², then the proximal step with lr/sqrt(acc) for lr. Slot "accumulator".
class ProximalAdagradOptimizer : public Optimizer {
 public:
  explicit ProximalAdagradOptimizer(const Operand& learning_rate, const ProximalAdagradOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  std::vector<Output> slots_and_hypers(const Variable& v, Loc loc);
  Operand learning_rate_;
  ProximalAdagradOptions o_;
};

struct AdaMaxOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool use_locking = false;
  std::string name = "AdaMax";
};
/// m += (g - m)(1 - beta1); v = max(beta2·v, |g|); w -= lr/(1 - beta1ᵗ)·m/(v + epsilon). Slots "m", "v"; the
/// variable beta1_power. Sparse gradients leave the rows they do not name alone.
class AdaMaxOptimizer : public Optimizer {
 public:
  explicit AdaMaxOptimizer(const Operand& learning_rate = Operand(0.001), const AdaMaxOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;
  Variable beta1_power() const { return beta1_power_; }

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;
  std::vector<Node*> finish(const std::vector<Node*>& updates, Loc loc) override;

 private:
  Operand learning_rate_;
  AdaMaxOptions o_;
  Variable beta1_power_;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  /// Variables to decay; default: all that are updated.
  std::optional<std::vector<Variable>> decay_var_list = {};
  /// TensorFlow's decay is weight_decay itself; with this it is lr·weight_decay.
  bool scale_decay_by_rate = false;
  bool use_locking = false;
  std::string name = "AdamW";
};
/// w -= weight_decay·w, then Adam's step with the gradient alone. A sparse gradient decays the rows it names.
class AdamWOptimizer : public AdamOptimizer {
 public:
  AdamWOptimizer(const Operand& weight_decay, const Operand& learning_rate = Operand(0.001),
                 const AdamWOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  bool decays(const Variable& v) const;
  Tensor decay_rate(const Variable& v, Loc loc);
  Operand weight_decay_;
  AdamWOptions o_;
};

struct LARSOptions {
  double momentum = 0.9, weight_decay = 1e-4, eeta = 1e-3, epsilon = 0;
  /// A variable whose name contains one of these takes the plain rate and no weight decay.
  std::vector<std::string> skip_list = {};
  bool use_nesterov = false;
  bool use_locking = false;
  std::string name = "LARSOptimizer";
};
/// Momentum with a rate per layer: trust = eeta·‖w‖/(‖g‖ + wd·‖w‖ + epsilon) (1 where a norm is 0);
/// a = momentum·a + lr·trust·(g + wd·w); w -= a. Sparse gradients: plain momentum. Slot "momentum".
class LARSOptimizer : public Optimizer {
 public:
  explicit LARSOptimizer(const Operand& learning_rate, const LARSOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;

 private:
  Operand learning_rate_;
  LARSOptions o_;
};

struct LAMBOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
  /// A variable whose name contains one of these is not decayed (or keeps the plain rate).
  std::vector<std::string> exclude_from_weight_decay = {}, exclude_from_layer_adaptation = {};
  bool use_locking = false;
  std::string name = "LAMB";
};
/// Adam's corrected m̂, v̂; r = m̂/(sqrt(v̂) + epsilon) + wd·w; w -= lr·‖w‖/‖r‖·r (no factor where a norm is 0).
/// Slots "m", "v"; variables beta1_power and beta2_power. Sparse gradients move every row, as Adam's do.
class LAMBOptimizer : public Optimizer {
 public:
  explicit LAMBOptimizer(const Operand& learning_rate = Operand(0.001), const LAMBOptions& o = {});
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override;

 protected:
  void create_slots(const std::vector<Variable>& vars, Loc loc) override;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) override;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) override;
  std::vector<Node*> finish(const std::vector<Node*>& updates, Loc loc) override;

 private:
  Node& step(const Tensor& m, const Tensor& s, const std::vector<Node*>& writes, const Variable& v, Loc loc);
  Operand learning_rate_;
  LAMBOptions o_;
  Variable beta1_power_, beta2_power_;
};

}  // namespace sluice::dsl::train
