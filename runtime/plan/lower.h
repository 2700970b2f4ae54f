#pragma once
// From the graph to a plan: prune, fix every shape, compute what is known, resolve variables, turn control
// edges and the order of accesses to each variable into step order. Where a shape depends on a value that
// only the run knows, the plan is cut: what follows is lowered when the value is there.

#include <functional>
#include <memory>
#include <vector>

#include "runtime/plan/ir.h"
#include "runtime/plan/prune.h"

namespace sluice::runtime::plan {

/// An output whose value comes from outside the lowered nodes.
struct Given {
  graph::Output output;
  ValueSpec spec;
  int feed = -1;                            // index of the run's feeds; -1 when known by literal or a handle
  std::optional<graph::Literal> value;      // known by value
  std::shared_ptr<Variable> variable = {};  // of a handle or ref
};

struct LowerRequest {
  const graph::Graph* graph = nullptr;
  std::vector<graph::Output> fetches;
  std::vector<graph::Node*> targets;
  std::vector<Given> given;
  std::vector<graph::Node*> only;  // the rest of a cut run: just these nodes; others are done
};

/// What a cut leaves for later.
struct Cut {
  std::vector<graph::Node*> nodes;
  std::vector<Given> given;             // known already: literals and handles
  std::vector<graph::Output> boundary;  // values made here that the rest reads (PlanGraph::boundary)
  std::vector<char> by_value;           // per boundary value: its elements decide shapes
  std::vector<int> feeds;               // feeds the rest reads, index into LowerRequest::given
};

/// A variable that the plan was specialised for.
struct VariableUse {
  std::shared_ptr<Variable> variable;
  uint64_t spec_hash = 0;  // Variable::spec_hash() when lowered
};

struct Lowered {
  PlanGraph graph;
  std::vector<int> by_value;  // not empty: lower again with these given feeds' values known
  std::unique_ptr<Cut> cut;
  std::vector<VariableUse> variables;
  std::vector<graph::Node*> nodes;  // what was lowered, for fingerprint()
};

/// Throws InvalidArgument (missing feed, shapes), FailedPrecondition (uninitialised variable), Unimplemented
/// (no kernel, loops), each naming the node and the author's line.
Lowered lower(const LowerRequest& request, const BuildOptions& options);

/// float becomes double where the plan is widened.
inline DType plan_dtype(DType t, const BuildOptions& o) {
  t = graph::base_dtype(t);
  return o.widen && t == DType::kFloat ? DType::kDouble : t;
}

}  // namespace sluice::runtime::plan
