// What a run may not ask for, in TensorFlow's words (graph-and-training §8.1).

#include "runtime/run_request.h"

#include <unordered_set>

#include "graph/support/check.h"

namespace sluice::runtime {
namespace {

// "(2, 3)", "(3,)", "()": shapes as Python prints them, which these messages do.
std::string tuple_string(const Dims& dims) {
  std::string s = "(";
  for (size_t i = 0; i < dims.size(); ++i)
    s += cat(i ? ", " : "", dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
  return s + (dims.size() == 1 ? ",)" : ")");
}

void check_feed(const Feed& f) {
  const graph::Output& o = f.output;
  SLUICE_REQUIRE(f.value, Code::kInvalidArgument, "The feed of Tensor '", o.name(), "' has no value");
  const Loc loc = o.node->loc();
  if (f.value.dtype() != o.dtype())
    throw_error(Code::kInvalidArgument,
                cat("Cannot feed value of type ", f.value.dtype(), " for Tensor '", o.name(),
                    "', which has type ", o.dtype()),
                o.node->name(), loc);
  const graph::Shape& shape = o.shape();
  if (!shape.compatible(graph::Shape(f.value.dims())))
    throw_error(
        Code::kInvalidArgument,
        cat("Cannot feed value of shape ", tuple_string(f.value.dims()), " for Tensor '", o.name(),
            "', which has shape '", shape.known_rank() ? tuple_string(shape.dims()) : "<unknown>", "'"),
        o.node->name(), loc);
}

}  // namespace

void check_request(const graph::Graph& graph, const RunRequest& request, bool widened) {
  SLUICE_REQUIRE(graph.num_nodes() > 0, Code::kFailedPrecondition,
                 "The Session graph is empty.  Add operations to the graph before calling run().");
  SLUICE_REQUIRE(!request.fetches.empty() || !request.targets.empty(), Code::kInvalidArgument,
                 "Must specify at least one target to fetch or execute.");
  std::unordered_set<graph::Output, graph::OutputHash> fed;
  for (const Feed& f : request.feeds) {
    const graph::Output& o = f.output;
    SLUICE_REQUIRE(o && &o.node->graph() == &graph, Code::kNotFound,
                   "FeedInputs: unable to find feed output ", o ? o.name() : "(none)");
    SLUICE_REQUIRE(o.index >= 0 && o.index < o.node->num_outputs(), Code::kInvalidArgument,
                   "FeedInputs: ", o.name(), " should have output index < ", o.node->num_outputs());
    SLUICE_REQUIRE(fed.insert(o).second, Code::kInvalidArgument, "Endpoint \"", o.name(),
                   "\" fed more than once.");
    // A widened session also takes the wider value as it is.
    if (widened && o.dtype() == DType::kFloat && f.value.dtype() == DType::kDouble) continue;
    check_feed(f);
  }
  for (const graph::Output& o : request.fetches) {
    SLUICE_REQUIRE(o && &o.node->graph() == &graph, Code::kNotFound, "FetchOutputs node ",
                   o ? o.name() : "(none)", ": not found");
    SLUICE_REQUIRE(o.index >= 0 && o.index < o.node->num_outputs(), Code::kInvalidArgument,
                   "Tried to fetch data for '", o.name(),
                   "', which produces no output.  To run to a node but not fetch any data, pass '",
                   o.node->name(), "' as a target of run()");
    SLUICE_REQUIRE(!fed.count(o), Code::kInvalidArgument, o.name(), " is both fed and fetched.");
  }
  for (const graph::Node* n : request.targets)
    SLUICE_REQUIRE(n && &n->graph() == &graph, Code::kNotFound,
                   "PruneForTargets: Some target nodes not found: ", n ? n->name() : "(none)");
}

}  // namespace sluice::runtime
