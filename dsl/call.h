#pragma once
// One op call of the DSL: opens the op's name scope, turns operands into tensors inside it (so constants and
// variable reads get TensorFlow's names, "MatMul/ReadVariableOp", "Sum/reduction_indices"), and adds the node
// that carries the scope's name. Local to a builder function; one thread.

#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

class Call {
 public:
  /// `fallback` names the call where the author gave no name.
  Call(Graph& g, const std::string& name, const char* fallback, Loc loc)
      : g_(g), scope_(g, name.empty() ? fallback : name), loc_(loc) {}

  Graph& graph() const { return g_; }
  Loc loc() const { return loc_; }
  /// The exact name of the result: "scope/".
  const std::string& scope() const { return scope_.scope(); }

  Output in(const Operand& x, const char* arg, DType like = DType::kFloat) const {
    return x.tensor(g_, arg, like, loc_);
  }
  /// Constants inside the scope.
  Output constant(Literal value, const std::string& name = "Const") const;
  Output scalar(DType dtype, double value, const std::string& name = "Const") const;
  Output i32(int64_t value, const std::string& name) const;
  Output i32s(const std::vector<int64_t>& values, const std::string& name) const;

  /// A helper node inside the scope.
  Node& inner(const char* op, std::vector<Output> inputs, AttrMap attrs = {},
              const std::string& name = {}) const;
  /// The node that bears the call's name.
  Node& make(const char* op, std::vector<Output> inputs, AttrMap attrs = {}) const;

 private:
  Graph& g_;
  graph::NameScope scope_;
  Loc loc_;
};

}  // namespace sluice::dsl
