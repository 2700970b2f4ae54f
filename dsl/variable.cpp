#include "dsl/variable.h"

#include <algorithm>
#include <map>

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/require.h"
#include "dsl/variable_store.h"

namespace sluice::dsl {

using graph::AttrScope;
using graph::ColocateWith;
using graph::ControlDependencies;
using graph::DeviceScope;
using graph::NameScope;
using graph::VariableInfo;

DType Variable::dtype() const { return node().attr<DType>("dtype"); }
Shape Variable::shape() const { return node().attr<Shape>("shape"); }

Tensor Variable::value(Loc loc) const {
  if (!is_resource()) return snapshot();
  return graph()
      .add({.op = "ReadVariableOp", .inputs = {handle()}, .attrs = {{"dtype", dtype()}}, .loc = loc})
      .output();
}

Tensor Variable::read_value(const std::string& name, Loc loc) const {
  Graph& g = graph();
  if (!is_resource()) {
    return g.add({.op = "Identity", .name = name, .inputs = {handle()}, .loc = loc}).output();
  }
  Tensor read;
  {
    NameScope scope(g, "Read");
    read = value(loc);
  }
  return identity(read, name, loc);
}

Variable create_variable(Graph& g, const std::string& name, bool scoped, const Dims& shape,
                         const VariableOptions& o, bool use_resource, Loc loc) {
  g.check_not_finalized();
  // A variable belongs to no control-dependency block: its initialiser must be able to run first.
  ControlDependencies outside(g, ControlDependencies::Clear{});
  std::optional<NameScope> root;
  if (!scoped) root.emplace(g, "");
  NameScope scope(g, name);
  std::string node_name = scope.scope().substr(0, scope.scope().size() - 1);
  auto info = std::make_shared<VariableInfo>();
  info->is_resource = use_resource;
  info->trainable = o.trainable;

  Tensor initial = o.initial_value;
  {
    // The initial value belongs beside a variable that does not exist yet.
    AttrScope beside(g, "_class", std::vector<std::string>{"loc:@" + node_name});
    if (!initial) {
      NameScope inner(g, "Initializer");
      DeviceScope anywhere(g, std::nullopt);
      initial = o.initializer(g, shape, o.dtype, loc);
    }
    AttrMap attrs{{"dtype", o.dtype}, {"shape", Shape(shape)}};
    if (use_resource) attrs["shared_name"] = node_name;
    info->node = &g.add({.op = use_resource ? "VarHandleOp" : "VariableV2",
                         .name = scope.scope(),
                         .attrs = std::move(attrs),
                         .loc = loc});
  }
  info->initial_value_node = &initial.node();
  info->initial_value_index = initial.output().index;
  Output handle{info->node, 0};
  if (use_resource) {
    {
      NameScope inner(g, "IsInitialized");
      g.add({.op = "VarIsInitializedOp", .inputs = {handle}, .loc = loc});
    }
    info->initializer = &g.add({.op = "AssignVariableOp",
                                .name = "Assign",
                                .inputs = {handle, initial},
                                .attrs = {{"dtype", o.dtype}},
                                .loc = loc});
    NameScope inner(g, "Read");
    info->snapshot_node =
        &g.add({.op = "ReadVariableOp", .inputs = {handle}, .attrs = {{"dtype", o.dtype}}, .loc = loc});
  } else {
    ColocateWith with(g, info->node);
    info->initializer = &g.add({.op = "Assign",
                                .name = "Assign",
                                .inputs = {handle, initial},
                                .attrs = {{"validate_shape", true}, {"use_locking", true}},
                                .loc = loc});
    info->snapshot_node = &g.add({.op = "Identity", .name = "read", .inputs = {handle}, .loc = loc});
  }
  for (const std::string& key : o.collections) g.collections().add(key, info);
  if (o.trainable) g.collections().add_unique(graph::keys::kTrainableVariables, info);
  return Variable(info);
}

Variable make_variable(Graph& g, const Tensor& initial_value, const std::string& name,
                       const VariableOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, initial_value.shape().fully_known(), Code::kInvalidArgument, "initial_value of '",
                    name, "' must have a shape specified: ", initial_value.name(), " has ",
                    initial_value.shape());
  VariableOptions with = o;
  with.initial_value = initial_value;
  with.dtype = initial_value.dtype();
  return create_variable(g, name, /*scoped=*/true, initial_value.shape().dims(), with,
                         o.use_resource.value_or(true), loc);
}

Variable make_variable(Graph& g, const Literal& initial_value, const std::string& name,
                       const VariableOptions& o, Loc loc) {
  VariableOptions with = o;
  with.dtype = initial_value.dtype();
  with.initializer = [&](Graph& graph, const Dims&, DType, Loc at) {
    return constant(graph, initial_value, "initial_value", at);
  };
  return create_variable(g, name, /*scoped=*/true, initial_value.dims(), with, o.use_resource.value_or(true),
                         loc);
}

Regularizer l2_regularizer(double scale) {
  SLUICE_REQUIRE(scale >= 0, Code::kInvalidArgument, "Setting a scale less than 0 on a regularizer: ", scale);
  if (scale == 0) return [](const Variable&) { return Tensor(); };
  return [scale](const Variable& v) {
    Call c(v.graph(), {}, "l2_regularizer", v.node().loc());
    Output factor = c.scalar(v.dtype(), scale, "scale");
    return Tensor(c.make("Mul", {factor, l2_loss(v, {}, c.loc())}));
  };
}

Regularizer l1_regularizer(double scale) {
  SLUICE_REQUIRE(scale >= 0, Code::kInvalidArgument, "Setting a scale less than 0 on a regularizer: ", scale);
  if (scale == 0) return [](const Variable&) { return Tensor(); };
  return [scale](const Variable& v) {
    Call c(v.graph(), {}, "l1_regularizer", v.node().loc());
    Output factor = c.scalar(v.dtype(), scale, "scale");
    Tensor sum = reduce_sum(abs(v, {}, c.loc()), {}, {}, c.loc());
    return Tensor(c.make("Mul", {factor, sum}));
  };
}

namespace {

Node& update(const char* resource_op, const char* ref_op, const Variable& v, const Operand& value,
             const std::string& name, Loc loc) {
  Graph& g = v.graph();
  Output in = value.tensor(g, "Const", v.dtype(), loc);
  SLUICE_REQUIRE_AT(loc, in.dtype() == v.dtype(), Code::kInvalidArgument, "Variable '", v.name(), "' is ",
                    v.dtype(), ", can't take a value of type ", in.dtype(), " (", in.name(), ")");
  SLUICE_REQUIRE_AT(loc, in.shape().compatible(v.shape()), Code::kInvalidArgument, "Cannot update variable '",
                    v.name(), "' with shape ", v.shape(), " using a Tensor with shape ", in.shape(),
                    ", shapes must be equal.");
  if (v.is_resource()) {
    return g.add({.op = resource_op,
                  .name = name,
                  .inputs = {v.handle(), in},
                  .attrs = {{"dtype", v.dtype()}},
                  .loc = loc});
  }
  return g.add({.op = ref_op, .name = name, .inputs = {v.handle(), in}, .loc = loc});
}

// The value after an update: the ref itself, or a read that waits for the write.
Tensor after(const Variable& v, Node& write, Loc loc) {
  if (!v.is_resource()) return write.output();
  ControlDependencies deps(v.graph(), {&write});
  return v.value(loc);
}

}  // namespace

Node& assign_op(const Variable& v, const Operand& value, const std::string& name, Loc loc) {
  return update("AssignVariableOp", "Assign", v, value, name, loc);
}
Node& assign_add_op(const Variable& v, const Operand& delta, const std::string& name, Loc loc) {
  return update("AssignAddVariableOp", "AssignAdd", v, delta, name, loc);
}
Node& assign_sub_op(const Variable& v, const Operand& delta, const std::string& name, Loc loc) {
  return update("AssignSubVariableOp", "AssignSub", v, delta, name, loc);
}
Tensor assign(const Variable& v, const Operand& value, const std::string& name, Loc loc) {
  return after(v, assign_op(v, value, name, loc), loc);
}
Tensor assign_add(const Variable& v, const Operand& delta, const std::string& name, Loc loc) {
  return after(v, assign_add_op(v, delta, name, loc), loc);
}
Tensor assign_sub(const Variable& v, const Operand& delta, const std::string& name, Loc loc) {
  return after(v, assign_sub_op(v, delta, name, loc), loc);
}

Tensor is_variable_initialized(const Variable& v, const std::string& name, Loc loc) {
  const char* op = v.is_resource() ? "VarIsInitializedOp" : "IsVariableInitialized";
  return v.graph().add({.op = op, .name = name, .inputs = {v.handle()}, .loc = loc}).output();
}

Node& assign_moving_average(const Variable& v, const Operand& value, double decay, const std::string& name,
                            Loc loc) {
  Graph& g = v.graph();
  Call c(g, name, "AssignMovingAvg", loc);
  ColocateWith with(g, &v.node());
  Tensor rate = c.scalar(v.dtype(), 1.0 - decay, "decay");
  Tensor gap = subtract(v.value(loc), value, "sub", loc);
  Tensor delta = multiply(gap, rate, "mul", loc);
  if (!v.is_resource()) return assign_sub_op(v, delta, c.scope(), loc);
  return assign_sub_op(v, delta, {}, loc);
}

std::vector<Variable> get_variables(Graph& g, const std::string& key, const std::string& scope) {
  std::vector<Variable> out;
  for (auto& info : g.collections().variables(key, scope)) out.emplace_back(info);
  return out;
}
std::vector<Variable> global_variables(Graph& g, const std::string& scope) {
  return get_variables(g, graph::keys::kGlobalVariables, scope);
}
std::vector<Variable> local_variables(Graph& g, const std::string& scope) {
  return get_variables(g, graph::keys::kLocalVariables, scope);
}
std::vector<Variable> trainable_variables(Graph& g, const std::string& scope) {
  return get_variables(g, graph::keys::kTrainableVariables, scope);
}

namespace {

// Initialisers of a group in order: where an initial value reads another variable of the group, the nodes
// from that read on are copied behind the other's initialiser. (On the nodes themselves a control edge would
// set the other variable again whenever this one alone is initialised.)
class InitialiserOrder {
 public:
  InitialiserOrder(Graph& g, const std::vector<Variable>& variables) : g_(g) {
    for (const Variable& v : variables) variables_[&v.node()] = v;
  }

  Node& initializer(const Variable& v) {
    if (auto it = done_.find(&v.node()); it != done_.end()) return *it->second;
    done_[&v.node()] = &v.initializer();  // holds while a cycle of reads is followed
    Node* root = &v.initializer();
    std::vector<Node*> nodes = graph::ancestors(std::span<Node* const>(&root, 1));
    std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
    std::map<const Node*, Node*> copies;
    for (Node* n : nodes) {
      std::vector<Node*> behind = others_read(*n, v);
      const auto inputs = n->inputs();
      const bool depends = std::any_of(inputs.begin(), inputs.end(),
                                       [&](const Output& in) { return copies.count(in.node) > 0; });
      if (!behind.empty() || depends) copies[n] = &copy(*n, copies, behind);
    }
    if (auto it = copies.find(root); it != copies.end()) done_[&v.node()] = it->second;
    return *done_[&v.node()];
  }

 private:
  // Initialisers of the variables that `n` looks at.
  std::vector<Node*> others_read(const Node& n, const Variable& self) {
    std::vector<Node*> out;
    if (n.has(graph::kWritesVariable) || n.has(graph::kAllowsUninitialized)) return out;
    for (const Output& in : n.inputs()) {
      const auto it = variables_.find(in.node);
      if (it != variables_.end() && !(it->second == self)) out.push_back(&initializer(it->second));
    }
    return out;
  }

  Node& copy(const Node& n, const std::map<const Node*, Node*>& copies, const std::vector<Node*>& behind) {
    std::vector<Output> inputs;
    for (const Output& in : n.inputs()) {
      const auto it = copies.find(in.node);
      inputs.push_back(it == copies.end() ? in : Output{it->second, in.index});
    }
    ControlDependencies only(g_, ControlDependencies::Clear{});
    ControlDependencies after(g_, behind);
    NameScope root(g_, "");
    const auto controls = n.control_inputs();
    return g_.add({.op = n.op(),
                   .name = n.name(),
                   .inputs = inputs,
                   .attrs = n.attrs(),
                   .control_inputs = {controls.begin(), controls.end()},
                   .loc = n.loc()});
  }

  Graph& g_;
  std::map<const Node*, Variable> variables_;
  std::map<const Node*, Node*> done_;
};

}  // namespace

Node& variables_initializer(Graph& g, const std::vector<Variable>& variables, const std::string& name,
                            Loc loc) {
  std::vector<Node*> ops;
  InitialiserOrder order(g, variables);
  for (const Variable& v : variables) ops.push_back(&order.initializer(v));
  return group(g, ops, name.empty() ? "init" : name, loc);
}
Node& global_variables_initializer(Graph& g, Loc loc) {
  return variables_initializer(g, global_variables(g), {}, loc);
}
Node& local_variables_initializer(Graph& g, Loc loc) {
  return variables_initializer(g, local_variables(g), {}, loc);
}

}  // namespace sluice::dsl
