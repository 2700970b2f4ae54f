#pragma once
// Summaries: nodes whose output is a serialized Summary string, collected under SUMMARIES. The builder's
// thread.

#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

/// Tag and node are `name` under the open name scopes; characters that a name can't have become '_'. The
/// value joins SUMMARIES (or `collections`).
Tensor summary_scalar(const std::string& name, const Operand& tensor,
                      const std::vector<std::string>& collections = {graph::keys::kSummaries},
                      Loc loc = Loc::current());
Tensor summary_histogram(const std::string& name, const Operand& values,
                         const std::vector<std::string>& collections = {graph::keys::kSummaries},
                         Loc loc = Loc::current());
/// One string of all of `inputs`.
Tensor summary_merge(const std::vector<Tensor>& inputs, const std::string& name = {},
                     Loc loc = Loc::current());
/// Of everything under `key`; empty when there is nothing.
Tensor summary_merge_all(Graph& g, const std::string& key = graph::keys::kSummaries,
                         Loc loc = Loc::current());

}  // namespace sluice::dsl
