#pragma once
// Measures computed in the graph for one batch. The builder's thread.

#include <string>

#include "dsl/tensor.h"

namespace sluice::dsl::metrics {

/// Share of rows whose largest logit is the label's.
Tensor accuracy(const Operand& labels, const Operand& logits, const std::string& name = {},
                Loc loc = Loc::current());
/// Number (float) of rows whose label is among the k largest logits.
Tensor top_k_correct(const Operand& labels, const Operand& logits, int k, const std::string& name = {},
                     Loc loc = Loc::current());

}  // namespace sluice::dsl::metrics
