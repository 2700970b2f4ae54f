#pragma once
// Is a model ready to run? Ops that name the variables without a value, and the lists of variables a program
// asks for by role (tf.report_uninitialized_variables and its kin). What Scaffold's ready ops are made of.
// The builder's thread.

#include <optional>
#include <string>
#include <vector>

#include "dsl/variable.h"

namespace sluice::dsl::train {

/// A string vector: the op names of the variables that have no value, empty when all have. Default: global
/// and local variables, and where the graph lists none, every ref variable in it.
Tensor report_uninitialized_variables(Graph& g, const std::optional<std::vector<Variable>>& variables = {},
                                      const std::string& name = {}, Loc loc = Loc::current());
/// The same for resources other than variables, of which none can be uninitialised here: an empty vector.
Tensor report_uninitialized_resources(Graph& g, const std::string& name = {}, Loc loc = Loc::current());
/// Names as above for the graph's resources and variables in one vector: what Scaffold fetches as ready_op.
Tensor ready_report(Graph& g, Loc loc = Loc::current());

std::vector<Variable> moving_average_variables(Graph& g, const std::string& scope = {});
std::vector<Variable> metric_variables(Graph& g, const std::string& scope = {});

}  // namespace sluice::dsl::train
