#pragma once
// What optimizers share: slots of partitioned variables, the powers of Adam's betas, averages under sparse
// gradients. Internal to dsl/train; the builder's thread.

#include <vector>

#include "dsl/train/optimizer.h"

namespace sluice::dsl::train {

/// Where `v` is part of a partitioned variable, `made` ("<v>/…", made beside it) becomes the same part of one
/// variable "<whole>/…".
void keep_slice(const Variable& v, const Variable& made);

/// A variable `name` that starts at beta, beside the variable of `vars` whose name sorts first.
Variable make_power(const std::vector<Variable>& vars, double beta, const char* name, Loc loc);
/// power *= beta.
Node& scale_power(const Variable& power, const Output& beta, Loc loc);

/// slot = beta·slot in every row, plus (1 - beta)·x in the rows `indices`: the value after it. The op that
/// writes joins `writes`.
Tensor average_rows(const Variable& slot, const Tensor& beta, const Output& indices, const Tensor& x,
                    std::vector<Node*>& writes, Loc loc);
/// The value of `v` after `write`.
Tensor value_after(const Variable& v, Node& write, Loc loc);

}  // namespace sluice::dsl::train
