#include "dsl/regularizers.h"

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"

namespace sluice::dsl {

Regularizer l1_l2_regularizer(double scale_l1, double scale_l2) {
  return sum_regularizer({l1_regularizer(scale_l1), l2_regularizer(scale_l2)});
}

Regularizer sum_regularizer(std::vector<Regularizer> regularizers) {
  std::erase_if(regularizers, [](const Regularizer& r) { return !r; });
  return [all = std::move(regularizers)](const Variable& v) {
    graph::NameScope scope(v.graph(), "sum_regularizer");
    std::vector<Tensor> penalties;
    for (const Regularizer& r : all)
      if (Tensor p = r(v)) penalties.push_back(p);
    if (penalties.empty()) return Tensor();
    return add_n(penalties, {}, v.node().loc());
  };
}

Tensor apply_regularization(Graph& g, const Regularizer& regularizer,
                            const std::optional<std::vector<Variable>>& weights, Loc loc) {
  const std::vector<Variable> vars = weights ? *weights : get_variables(g, graph::keys::kWeights);
  SLUICE_REQUIRE_AT(loc, !vars.empty(), Code::kInvalidArgument, "No weights to regularize.");
  Call c(g, {}, "get_regularization_penalty", loc);
  std::vector<Output> penalties;
  for (const Variable& v : vars) {
    Tensor p = regularizer(v);
    if (!p) p = constant(g, 0.0, v.dtype(), {}, loc);
    SLUICE_REQUIRE_AT(loc, !p.shape().known_rank() || p.shape().rank() == 0, Code::kInvalidArgument,
                      "regularizer must return a scalar Tensor instead of a Tensor with rank ",
                      p.shape().rank(), ".");
    penalties.push_back(p);
  }
  Tensor sum = c.make("AddN", std::move(penalties));
  g.collections().add(graph::keys::kRegularizationLosses,
                      graph::GraphElement{&sum.node(), sum.output().index});
  return sum;
}

}  // namespace sluice::dsl
