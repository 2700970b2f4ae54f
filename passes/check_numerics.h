#pragma once
// Numeric checks as nodes (graph-and-training §3.2, 3.3). The builder's thread.

#include <string>

#include "graph/graph.h"

namespace sluice::passes {

/// `t` again; a NaN or Inf in it ends the run with InvalidArgument "<message> : Tensor had NaN values".
/// Integer tensors are a type error.
graph::Output check_numerics(graph::Output t, const std::string& message, const std::string& name = {},
                             Loc loc = Loc::current());

/// `t` held back until its check has passed (scope VerifyFinite).
graph::Output verify_tensor_all_finite(graph::Output t, const std::string& message,
                                       const std::string& name = {}, Loc loc = Loc::current());

/// Checks every half, float and double output of every op that exists now, in creation order, each after the
/// one before, so that the first offender is the one reported; variables are read again after each op that
/// updates them. Returns the op to run. Ops that set a variable from scratch or touch files (initialisers,
/// restores) are left out: a check must not run them. InvalidArgument when the graph has control-flow ops.
graph::Node& add_check_numerics_ops(graph::Graph& g, Loc loc = Loc::current());

}  // namespace sluice::passes
