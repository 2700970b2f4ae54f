#pragma once
// Learning-rate schedules (graph-and-training §4.6): float tensors that follow the global step, read each
// step. `step` is a variable or a tensor; a number is refused, since it never changes. The builder's thread.

#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl::train {

/// lr · rate^(step/n); the exponent is floored where staircase.
Tensor exponential_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                         double decay_rate, bool staircase = false, const std::string& name = {},
                         Loc loc = Loc::current());
/// lr · exp(-rate · step/n).
Tensor natural_exp_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                         double decay_rate, bool staircase = false, const std::string& name = {},
                         Loc loc = Loc::current());
/// lr / (1 + rate · step/n).
Tensor inverse_time_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                          double decay_rate, bool staircase = false, const std::string& name = {},
                          Loc loc = Loc::current());
struct PolynomialDecayOptions {
  double end_learning_rate = 1e-4, power = 1.0;
  bool cycle = false;
  std::string name = {};
};
/// (lr - end)(1 - s/n)^power + end with s = min(step, n); with cycle n grows to the next multiple.
Tensor polynomial_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                        const PolynomialDecayOptions& o = {}, Loc loc = Loc::current());
/// values[i] for the first boundary that x does not exceed, the last value beyond them all. InvalidArgument
/// unless there is one value more than boundaries, or when a boundary has a fraction and x is an integer.
Tensor piecewise_constant(const Operand& x, const std::vector<double>& boundaries,
                          const std::vector<double>& values, const std::string& name = {},
                          Loc loc = Loc::current());
/// lr · ((1 - alpha) · (1 + cos(pi · s/n))/2 + alpha).
Tensor cosine_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                    double alpha = 0, const std::string& name = {}, Loc loc = Loc::current());
struct CosineRestartOptions {
  double t_mul = 2.0, m_mul = 1.0, alpha = 0.0;
  std::string name = {};
};
Tensor cosine_decay_restarts(const Operand& learning_rate, const Operand& global_step,
                             double first_decay_steps, const CosineRestartOptions& o = {},
                             Loc loc = Loc::current());
struct LinearCosineOptions {
  double num_periods = 0.5, alpha = 0.0, beta = 0.001;
  std::string name = {};
};
Tensor linear_cosine_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                           const LinearCosineOptions& o = {}, Loc loc = Loc::current());
struct NoisyLinearCosineOptions {
  double initial_variance = 1.0, variance_decay = 0.55;
  double num_periods = 0.5, alpha = 0.0, beta = 0.001;
  std::optional<int64_t> seed = {};
  std::string name = {};
};
/// lr · ((alpha + linear + noise)·wave + beta), the noise drawn each step from N(0, initial_variance / (1 +
/// s)^variance_decay).
Tensor noisy_linear_cosine_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                                 const NoisyLinearCosineOptions& o = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl::train
