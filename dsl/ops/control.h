#pragma once
// Order, printing, assertions and checks: TensorFlow's functions and names. See graph/scopes.h for
// ControlDependencies, NameScope, DeviceScope and ColocateWith. The builder's thread.

#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

Node& no_op(Graph& g, const std::string& name = {}, Loc loc = Loc::current());
/// An op that runs after all of `nodes` (graph-and-training §1.3).
Node& group(Graph& g, const std::vector<Node*>& nodes, const std::string& name = {},
            Loc loc = Loc::current());
/// `output` that becomes available after `dependencies` have run.
Tensor with_dependencies(const std::vector<Node*>& dependencies, const Tensor& output,
                         const std::string& name = {}, Loc loc = Loc::current());
/// Tensors that become available together; empty ones stay empty.
std::vector<Tensor> tuple(const std::vector<Tensor>& tensors, const std::string& name = {},
                          const std::vector<Node*>& control_inputs = {}, Loc loc = Loc::current());

struct PrintOptions {
  std::string message = {};
  int first_n = -1;  // -1: always
  int summarize = 3;
  std::string name = {};
};
/// `input` that prints `data` on stderr when it is computed.
Tensor print(const Operand& input, const std::vector<Operand>& data, const PrintOptions& o = {},
             Loc loc = Loc::current());
/// Fails the run with InvalidArgument and the first elements of `data` unless `condition` holds. Run it by a
/// control dependency.
Node& assert_that(const Tensor& condition, const std::vector<Operand>& data, int summarize = 3,
                  const std::string& name = {}, Loc loc = Loc::current());

/// See passes/check_numerics.h.
Tensor check_numerics(const Operand& tensor, const std::string& message, const std::string& name = {},
                      Loc loc = Loc::current());
Tensor verify_tensor_all_finite(const Operand& tensor, const std::string& message,
                                const std::string& name = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl
