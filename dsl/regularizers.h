#pragma once
// Penalties on variables besides l1_regularizer and l2_regularizer of dsl/variable.h (contrib.layers'
// regularizers). The builder's thread.

#include <optional>
#include <string>
#include <vector>

#include "dsl/variable.h"

namespace sluice::dsl {

/// scale_l1·sum(|w|) + scale_l2·sum(w²)/2. InvalidArgument for a negative scale.
Regularizer l1_l2_regularizer(double scale_l1 = 1.0, double scale_l2 = 1.0);
/// The sum of several; those that give nothing are left out.
Regularizer sum_regularizer(std::vector<Regularizer> regularizers);
/// The summed penalty of `weights` (default: the collection WEIGHTS), which joins REGULARIZATION_LOSSES.
/// InvalidArgument "No weights to regularize.", or for a penalty that is no scalar.
Tensor apply_regularization(Graph& g, const Regularizer& regularizer,
                            const std::optional<std::vector<Variable>>& weights = {},
                            Loc loc = Loc::current());

}  // namespace sluice::dsl
