// Helpers on (gradient, variable) pairs: summaries, clipping, multipliers.
#include <algorithm>

#include "dsl/ops/math.h"
#include "dsl/require.h"
#include "dsl/summary.h"
#include "dsl/train/train_op.h"
#include "graph/support/log.h"
#include "graph/support/near.h"
#include "passes/clip_gradients.h"

namespace sluice::dsl::train {

namespace {

Output values_of(const GradValue& g) { return g.is_slices() ? g.slices.values : g.dense; }

const Operand* find_multiplier(const GradientMultipliers& list, const Variable& v) {
  for (const auto& [key, value] : list) {
    if (key.variable && key.variable == v) return &value;
  }
  for (const auto& [key, value] : list) {
    if (!key.variable && key.name == v.name()) return &value;
  }
  return nullptr;
}

void warn_about_unknown(const GradsAndVars& pairs, const GradientMultipliers& list) {
  std::vector<std::string> names;
  for (const GradVar& p : pairs) names.push_back(p.var.name());
  for (const auto& [key, value] : list) {
    std::string name = key.variable ? key.variable.name() : key.name;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    log_warning("multiply_gradients: '", name, "' is none of the variables.", did_you_mean(name, names));
  }
}

}  // namespace

std::vector<Tensor> add_gradients_summaries(const GradsAndVars& grads_and_vars, Loc loc) {
  std::vector<Tensor> out;
  for (const GradVar& p : grads_and_vars) {
    if (p.grad.none()) {
      log_info("Var ", p.var.name(), " has no gradient");
      continue;
    }
    Tensor values = values_of(p.grad);
    out.push_back(summary::histogram(p.var.name() + "_gradient", values, {}, loc));
    Tensor norm = passes::global_norm({GradValue(values.output())}, {}, loc);
    out.push_back(summary::scalar(p.var.name() + "_gradient_norm", norm, {}, loc));
  }
  return out;
}

GradsAndVars clip_gradient_norms(const GradsAndVars& grads_and_vars, double max_norm, Loc loc) {
  GradsAndVars out = grads_and_vars;
  for (GradVar& p : out) {
    if (!p.grad.none()) p.grad = passes::clip_by_norm(p.grad, max_norm, nullptr, {}, loc);
  }
  return out;
}

TransformGrads clip_gradient_norms_fn(double max_norm) {
  return [max_norm](const GradsAndVars& pairs) { return clip_gradient_norms(pairs, max_norm); };
}

GradsAndVars multiply_gradients(const GradsAndVars& grads_and_vars, const GradientMultipliers& multipliers,
                                Loc loc) {
  SLUICE_REQUIRE_AT(loc, !multipliers.empty(), Code::kInvalidArgument, "`gradient_multipliers` is empty.");
  warn_about_unknown(grads_and_vars, multipliers);
  GradsAndVars out = grads_and_vars;
  for (GradVar& p : out) {
    const Operand* by = find_multiplier(multipliers, p.var);
    if (!by) continue;
    SLUICE_REQUIRE_AT(loc, !p.grad.none(), Code::kInvalidArgument,
                      "Requested multiple of `None` gradient. Variable '", p.var.name(), "'");
    Tensor product = multiply(Tensor(values_of(p.grad)), *by, "mul", loc);
    if (p.grad.is_slices()) {
      p.grad.slices.values = product;
    } else {
      p.grad = GradValue(product.output());
    }
  }
  return out;
}

}  // namespace sluice::dsl::train
