#pragma once
// Values known while a plan is built: an op whose inputs are all known is computed now by its reference
// kernel, so that shape arithmetic vanishes from the plan.

#include <optional>
#include <vector>

#include "graph/infer.h"
#include "runtime/plan/ir.h"

namespace sluice::runtime::plan {

/// Larger values are left to the run.
inline constexpr int64_t kEvaluateElements = 1024;

/// Outputs of a stateless op on known inputs; nullopt when it has no reference kernel that takes them or the
/// kernel fails (the step then fails at run time, where the error belongs). `outputs` gives dtypes and dims.
std::optional<std::vector<graph::Literal>> evaluate(const graph::Node& node, const graph::AttrMap& attrs,
                                                    const std::vector<graph::Literal>& inputs,
                                                    const std::vector<ValueSpec>& outputs,
                                                    const BuildOptions& options);

/// Known integers as PartialInts; nullopt for other types and for more than one dimension.
std::optional<graph::PartialInts> to_partial(const graph::Literal& literal);
/// The reverse, for fully known values of type int32 or int64.
graph::Literal to_literal(const graph::PartialInts& partial, DType dtype);

}  // namespace sluice::runtime::plan
