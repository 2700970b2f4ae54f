#include "dsl/train/train_op.h"

#include <algorithm>

#include "dsl/ops/control.h"
#include "dsl/require.h"
#include "graph/support/log.h"
#include "passes/emit.h"

namespace sluice::dsl::train {

using graph::ControlDependencies;
using graph::GraphElement;
using graph::NameScope;

namespace {

// The update ops to run, each once, in the order given; warns where the collection has more.
std::vector<Node*> updates_to_run(Graph& g, const std::optional<std::vector<Node*>>& given) {
  std::vector<Node*> global, chosen;
  auto add = [](std::vector<Node*>& list, Node* n) {
    if (std::find(list.begin(), list.end(), n) == list.end()) list.push_back(n);
  };
  for (const GraphElement& e : g.collections().elements(graph::keys::kUpdateOps)) add(global, e.node);
  if (!given) return global;
  for (Node* n : *given) add(chosen, n);
  bool covers = std::all_of(global.begin(), global.end(), [&](Node* n) {
    return std::find(chosen.begin(), chosen.end(), n) != chosen.end();
  });
  if (!covers) {
    log_warning("update_ops in create_train_op does not contain all the  update_ops in GraphKeys.UPDATE_OPS");
  }
  return chosen;
}

std::vector<Variable> variables_to_train(Graph& g, const std::optional<std::vector<Variable>>& given) {
  std::vector<Variable> trainable = trainable_variables(g);
  std::vector<Variable> vars = given ? *given : trainable;
  for (const Variable& v : vars) {
    bool known = v.trainable() || std::find(trainable.begin(), trainable.end(), v) != trainable.end();
    SLUICE_REQUIRE(known, Code::kInvalidArgument, "variables_to_train: '", v.name(), "' is not trainable");
  }
  SLUICE_REQUIRE(!vars.empty(), Code::kInvalidArgument, "create_train_op: there are no variables to train");
  return vars;
}

// Checks that all hold before anything is updated.
class Guard {
 public:
  Guard(Graph& g, Loc loc) : g_(g), loc_(loc) {}

  void add(const Output& t, const std::string& message) {
    NameScope scope(g_, "guard_updates");
    checks_.push_back(&check_numerics(Tensor(t), message, {}, loc_).node());
  }

  void add(const GradsAndVars& pairs) {
    for (const GradVar& p : pairs) {
      if (p.grad.none()) continue;
      add(p.grad.is_slices() ? p.grad.slices.values : p.grad.dense,
          cat("Gradient of ", p.var.name(), " is inf or nan"));
    }
  }

  void add(const Optimizer& optimizer) {
    for (const auto& [name, value] : optimizer.hyper_parameters()) {
      if (value.is_number() || !graph::is_floating(value.dtype())) continue;
      add(value.tensor(g_), cat(name, " of ", optimizer.name(), " is inf or nan"));
    }
  }

  // Moving averages wait as well, unless a check itself needs them.
  void hold_back(const std::vector<Node*>& updates) {
    std::vector<Node*> needed = graph::ancestors(checks_);
    for (Node* u : updates) {
      if (std::find(needed.begin(), needed.end(), u) != needed.end()) continue;
      for (Node* c : checks_) g_.add_control_input(*u, *c);
    }
  }

  const std::vector<Node*>& checks() const { return checks_; }

 private:
  Graph& g_;
  Loc loc_;
  std::vector<Node*> checks_;
};

}  // namespace

Tensor create_train_op(const Tensor& total_loss, Optimizer& optimizer, const TrainOpOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, total_loss, Code::kInvalidArgument,
                    "create_train_op: total_loss is an empty tensor");
  Graph& g = total_loss.graph();
  Variable step = o.global_step.resolve(g, loc);
  std::vector<Node*> updates = updates_to_run(g, o.update_ops);
  Guard guard(g, loc);
  if (o.guard_updates) guard.add(total_loss, "LossTensor is inf or nan");

  Tensor loss = total_loss;
  if (!updates.empty()) {
    Node* barrier = nullptr;
    {
      ControlDependencies after(g, updates);
      barrier = &no_op(g, "update_barrier", loc);
    }
    loss = with_dependencies({barrier}, loss, {}, loc);
  }
  ComputeOptions compute;
  compute.var_list = variables_to_train(g, o.variables_to_train);
  compute.gate_gradients = o.gate_gradients;
  compute.aggregation_method = o.aggregation_method;
  compute.colocate_gradients_with_ops = o.colocate_gradients_with_ops;
  GradsAndVars pairs = optimizer.compute_gradients(loss, compute, loc);
  if (o.transform_grads_fn) pairs = o.transform_grads_fn(pairs);
  if (o.summarize_gradients) {
    NameScope scope(g, "summarize_grads");
    add_gradients_summaries(pairs, loc);
  }
  if (o.guard_updates) {
    guard.add(pairs);
    guard.add(optimizer);
    guard.hold_back(updates);
  }
  Node* applied = nullptr;
  {
    ControlDependencies after(g, guard.checks());
    applied = &optimizer.apply_gradients(pairs, step, {}, loc);
  }
  NameScope scope(g, "train_op");
  if (o.check_numerics) loss = check_numerics(loss, "LossTensor is inf or nan", {}, loc);
  Tensor result = with_dependencies({applied}, loss, {}, loc);
  g.collections().add_unique(graph::keys::kTrainOp, GraphElement{&result.node(), 0});
  return result;
}

}  // namespace sluice::dsl::train
