#pragma once
// Clipping, as nodes under TensorFlow's names (graph-and-training §3.1). Values and gradients are right where
// TensorFlow's formulas give 0/0 or inf/inf: a zero norm with a zero limit, an infinite limit (see
// docs/semantics.md). IndexedSlices are clipped on their stored values. The builder's thread.

#include <string>
#include <utility>
#include <vector>

#include "graph/grad.h"
#include "graph/graph.h"

namespace sluice::passes {

/// max(min(t, hi), lo), so lo wins where lo > hi. lo and hi are scalars or of t's shape and may not enlarge
/// it (InvalidArgument).
graph::GradValue clip_by_value(const graph::GradValue& t, graph::Output lo, graph::Output hi,
                               const std::string& name = {}, Loc loc = Loc::current());
graph::GradValue clip_by_value(const graph::GradValue& t, double lo, double hi, const std::string& name = {},
                               Loc loc = Loc::current());

/// t scaled so that its Euclidean norm over `axes` (all when absent) is at most `limit`; t itself inside the
/// ball. A NaN anywhere makes the whole result NaN.
graph::GradValue clip_by_norm(const graph::GradValue& t, graph::Output limit,
                              const std::vector<int32_t>* axes = nullptr, const std::string& name = {},
                              Loc loc = Loc::current());
graph::GradValue clip_by_norm(const graph::GradValue& t, double limit,
                              const std::vector<int32_t>* axes = nullptr, const std::string& name = {},
                              Loc loc = Loc::current());

/// sqrt of the sum of squares over all of `ts` (none is skipped). InvalidArgument when nothing is left.
graph::Output global_norm(const std::vector<graph::GradValue>& ts, const std::string& name = {},
                          Loc loc = Loc::current());

/// Every tensor times min(limit / norm, 1): the list (none stays none) and the norm. `use_norm` replaces the
/// computed norm. A norm that is not finite makes every element NaN.
std::pair<std::vector<graph::GradValue>, graph::Output> clip_by_global_norm(
    const std::vector<graph::GradValue>& ts, graph::Output limit, graph::Output use_norm = {},
    const std::string& name = {}, Loc loc = Loc::current());
std::pair<std::vector<graph::GradValue>, graph::Output> clip_by_global_norm(
    const std::vector<graph::GradValue>& ts, double limit, graph::Output use_norm = {},
    const std::string& name = {}, Loc loc = Loc::current());

/// t scaled so that norm / element count is at most `limit`.
graph::Output clip_by_average_norm(graph::Output t, graph::Output limit, const std::string& name = {},
                                   Loc loc = Loc::current());
graph::Output clip_by_average_norm(graph::Output t, double limit, const std::string& name = {},
                                   Loc loc = Loc::current());

}  // namespace sluice::passes
