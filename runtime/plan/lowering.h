#pragma once
// The walk behind lower(): one object a call, its parts in lowering_*.cpp. Internal to runtime/plan.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/infer.h"
#include "runtime/plan/lower.h"

namespace sluice::runtime::plan {

using graph::Literal;
using graph::Node;
using graph::Output;
using graph::PartialInts;
using graph::Shape;

// What is known of a variable at one place of the walk.
struct VariableState {
  std::shared_ptr<Variable> variable;
  std::optional<ValueSpec> spec;
  const Node* node = nullptr;
  ValueId handle = -1;
  ValueId read = -1;  // a read without control edges that later readers may share
  OpId last_write = -1;
  std::vector<OpId> reads;  // since the last write
};

// One node on its way to becoming an op: what lower_op's steps find out, in turn.
struct OpCall {
  Node* n = nullptr;
  bool own = false;  // keeps float in a widened plan
  bool stateful = false;
  std::vector<OpId> after = {};
  std::vector<ValueId> in = {};
  std::vector<Shape> shapes = {};  // of the inputs
  std::vector<VariableState*> handles = {};
  bool all_known = true;  // every input by value
  std::vector<Shape> out_shapes = {};
  std::vector<std::optional<PartialInts>> folded = {};  // outputs known as integers, wholly or in part
  std::vector<ValueSpec> specs = {};                    // of the outputs
  graph::AttrMap attrs = {};                            // that differ from the node's
};

class Lowering {
 public:
  Lowering(const LowerRequest& request, const BuildOptions& options)
      : request_(request),
        options_(options),
        outputs_(static_cast<size_t>(request.graph->last_id()) + 2),
        done_(outputs_.size(), -1),
        deferred_(outputs_.size(), 0) {}

  Lowered run();

 private:
  PlanGraph& g() { return result_.graph; }
  ValueId value_of(const Output& o);
  void lower_node(Node* n);
  void lower_constant(Node* n, const Literal& literal, const std::vector<OpId>& after);
  void lower_variable(Node* n);
  bool lower_view(Node* n, const std::vector<OpId>& after);
  void lower_op(Node* n, std::vector<OpId> after);
  void read_inputs(OpCall& call);
  bool fold_shapes(OpCall& call);
  void describe_outputs(OpCall& call);
  bool evaluate_now(OpCall& call);
  void order_accesses(OpCall& call);
  void emit(OpCall& call);
  void note_accesses(OpCall& call, OpId op);
  void barrier(Node* n, std::vector<ValueId> outputs, std::vector<OpId> after);
  ValueId read_variable(Node* n, ValueId handle, const std::vector<OpId>& after, bool is_ref);
  bool must_wait(Node* n);
  void defer(Node* n);
  bool resolve_unknown(Node* n, const graph::InferContext& c);
  bool feeds_behind(const Output& o, std::vector<int>& feeds);
  std::vector<Shape> infer(Node* n, graph::InferContext& c);
  VariableState& state(ValueId handle) { return variables_.at(g().value(handle).variable.get()); }
  VariableState& track(const std::shared_ptr<Variable>& v, const Node* node);
  ValueId new_handle(VariableState& s, const std::string& name);
  ValueId constant(Literal literal, std::string name);
  ValueId cast_value(ValueId v, DType to, const Node* n, const std::string& name);
  std::optional<PartialInts> known_integers(ValueId v);
  void set_outputs(Node* n, std::vector<ValueId> v) { outputs_[static_cast<size_t>(n->id())] = std::move(v); }
  void make_cut();

  const LowerRequest& request_;
  const BuildOptions& options_;
  Lowered result_;
  FedSet given_;                               // Output → index into request.given
  std::vector<ValueId> given_values_;          // made when first used
  std::vector<std::vector<ValueId>> outputs_;  // by node id
  std::vector<OpId> done_;                     // by node id: the op that completes it, -1: from the start
  std::vector<char> deferred_;                 // by node id
  std::vector<Node*> order_, waiting_;         // waiting_: deferred, in order
  std::unordered_set<Output, graph::OutputHash> wanted_by_value_;
  std::unordered_map<const Variable*, VariableState> variables_;
  std::unordered_set<const Variable*> waiting_reads_, waiting_writes_;
  std::unordered_map<ValueId, PartialInts> partial_;
  std::vector<char> is_target_;  // by node id
  double next_order_ = 0;
};

inline bool is_handle(const PlanValue& v) { return v.storage == Storage::kHandle; }

}  // namespace sluice::runtime::plan
