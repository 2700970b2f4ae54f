#pragma once
// Variables: state that survives runs. The DSL makes resource variables (VarHandleOp and its helpers) under
// TensorFlow's node names, `v`, `v/Initializer/…`, `v/Assign`, `v/Read/ReadVariableOp`,
// `v/IsInitialized/VarIsInitializedOp`, and ref variables (VariableV2) for those who ask. A Variable is a
// cheap handle shared with the graph's collections; it lives as long as its graph. Reading one is an op with
// a place in the order (decisions #19). The builder's thread.
//
//   Variable w = get_variable(g, "w", {784, 10});
//   Tensor y = matmul(x, w);                        // reads w here
//   Tensor w2 = assign_add(w, 1.0);                 // the value after the update

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/initializers.h"
#include "dsl/tensor.h"

namespace sluice::dsl {

class Variable {
 public:
  Variable() = default;
  explicit Variable(std::shared_ptr<graph::VariableInfo> info) : info_(std::move(info)) {}
  explicit operator bool() const { return info_ != nullptr; }

  /// The op's name, "scope/w".
  const std::string& name() const { return node().name(); }
  Node& node() const { return *info_->node; }
  Graph& graph() const { return node().graph(); }
  DType dtype() const;
  Shape shape() const;
  bool is_resource() const { return info_->is_resource; }
  bool trainable() const { return info_->trainable; }
  /// The resource handle, or the ref.
  Output handle() const { return {info_->node, 0}; }
  /// The op that sets the initial value.
  Node& initializer() const { return *info_->initializer; }
  Tensor initial_value() const { return Output{info_->initial_value_node, info_->initial_value_index}; }
  /// The read made with the variable ("v/Read/ReadVariableOp"); its place in the order is nowhere.
  Tensor snapshot() const { return Output{info_->snapshot_node, info_->snapshot_index}; }
  /// What using the variable in an expression means: a new read of a resource variable, "v/read" of a ref
  /// one.
  Tensor value(Loc loc = Loc::current()) const;
  /// A read ordered by the open control dependencies, whatever kind of variable.
  Tensor read_value(const std::string& name = {}, Loc loc = Loc::current()) const;
  operator Tensor() const { return value(Loc{}); }

  const std::shared_ptr<graph::VariableInfo>& info() const { return info_; }
  bool operator==(const Variable& other) const { return info_ == other.info_; }

 private:
  std::shared_ptr<graph::VariableInfo> info_;  // shared with the graph's collections
};

/// A penalty on a variable, or an empty tensor for none.
using Regularizer = std::function<Tensor(const Variable&)>;
/// scale · sum(w²)/2; scale 0 gives none. InvalidArgument for a negative scale.
Regularizer l2_regularizer(double scale);
/// scale · sum(|w|).
Regularizer l1_regularizer(double scale);

struct VariableOptions {
  DType dtype = DType::kFloat;
  Initializer initializer = {};  // default: the scope's, else by dtype
  Tensor initial_value = {};     // instead of an initializer; the shape argument may then be empty
  Regularizer regularizer = {};  // default: the scope's
  bool trainable = true;
  std::vector<std::string> collections = {graph::keys::kGlobalVariables};
  std::optional<bool> use_resource = {};  // default: the scope's, else true
};

/// tf.get_variable: the name under the open variable scopes, made or shared by their reuse rule
/// (graph-and-training §8.5). Regularizers run once, when the variable is made, into REGULARIZATION_LOSSES.
/// Errors carry TensorFlow's texts.
Variable get_variable(Graph& g, const std::string& name, const Dims& shape, const VariableOptions& o = {},
                      Loc loc = Loc::current());
/// tf.Variable: a new variable named under the open name scopes, uniquified.
Variable make_variable(Graph& g, const Tensor& initial_value, const std::string& name = "Variable",
                       const VariableOptions& o = {}, Loc loc = Loc::current());
Variable make_variable(Graph& g, const Literal& initial_value, const std::string& name = "Variable",
                       const VariableOptions& o = {}, Loc loc = Loc::current());

enum class Reuse { kInherit, kFalse, kTrue, kAuto };

struct VariableScopeOptions {
  Reuse reuse = Reuse::kInherit;
  Initializer initializer = {};
  Regularizer regularizer = {};
  std::optional<bool> use_resource = {};
  std::optional<DType> dtype = {};
  bool name_scope = true;  // also open a name scope
};

/// tf.variable_scope. Opens with the object and ends with it; innermost first.
class VariableScope {
 public:
  /// The scope `name` inside the open one.
  VariableScope(Graph& g, const std::string& name, const VariableScopeOptions& o = {});
  /// As tf.variable_scope(None, default_name): `default_name`, made unique among the scopes opened here.
  struct Default {
    std::string name;
  };
  VariableScope(Graph& g, const Default& default_name, const VariableScopeOptions& o = {});
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

  /// "a/b": what variable names start with.
  const std::string& name() const { return path_; }
  /// "a/b_1/": the name scope, or "".
  std::string name_scope() const { return names_ ? names_->scope() : std::string(); }

 private:
  void open(const std::string& name, const VariableScopeOptions& o);
  Graph& g_;
  std::string path_;
  std::optional<graph::NameScope> names_;
};

/// The open variable scope's path, "" at the root.
std::string variable_scope_name(Graph& g);

/// Sets variables; the result is the value after the update (for resource variables a read behind it).
Tensor assign(const Variable& v, const Operand& value, const std::string& name = {},
              Loc loc = Loc::current());
Tensor assign_add(const Variable& v, const Operand& delta, const std::string& name = {},
                  Loc loc = Loc::current());
Tensor assign_sub(const Variable& v, const Operand& delta, const std::string& name = {},
                  Loc loc = Loc::current());
/// The same without the read: the op that writes.
Node& assign_op(const Variable& v, const Operand& value, const std::string& name = {},
                Loc loc = Loc::current());
Node& assign_add_op(const Variable& v, const Operand& delta, const std::string& name = {},
                    Loc loc = Loc::current());
Node& assign_sub_op(const Variable& v, const Operand& delta, const std::string& name = {},
                    Loc loc = Loc::current());
Tensor is_variable_initialized(const Variable& v, const std::string& name = {}, Loc loc = Loc::current());

/// Variables of a collection.
std::vector<Variable> get_variables(Graph& g, const std::string& key, const std::string& scope = {});
std::vector<Variable> global_variables(Graph& g, const std::string& scope = {});
std::vector<Variable> local_variables(Graph& g, const std::string& scope = {});
std::vector<Variable> trainable_variables(Graph& g, const std::string& scope = {});
/// An op that sets each variable to its initial value; a variable whose initial value reads others is set
/// after them.
Node& variables_initializer(Graph& g, const std::vector<Variable>& variables, const std::string& name = {},
                            Loc loc = Loc::current());
Node& global_variables_initializer(Graph& g, Loc loc = Loc::current());
Node& local_variables_initializer(Graph& g, Loc loc = Loc::current());

/// decay: variable -= (variable - value)·(1 - decay), the op that does it (scope AssignMovingAvg).
Node& assign_moving_average(const Variable& v, const Operand& value, double decay,
                            const std::string& name = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl
