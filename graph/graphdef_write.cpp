// Graph → GraphDef: nodes in creation order, default attrs of TensorFlow 1.15 included, so equal
// graphs give equal bytes.

#include "graph/graphdef_internal.h"
#include "graph/proto/graph.pb.h"

namespace sluice::graph::detail {
namespace {

void node_to_proto(const Node& node, bool with_shapes, proto::NodeDef* out) {
  out->set_name(node.name());
  out->set_op(node.op());
  out->set_device(node.device());
  for (const Output& in : node.inputs()) {
    SLUICE_REQUIRE(in, Code::kFailedPrecondition, "node '", node.name(),
                   "' has an input that is not connected");
    out->add_input(in.index == 0 ? in.node->name() : cat(in.node->name(), ":", in.index));
  }
  for (const Node* c : node.control_inputs()) out->add_input(cat("^", c->name()));
  auto& attrs = *out->mutable_attr();
  for (const auto& [name, value] : node.attrs())
    if (!node.def().ignores_attr(name, value)) attr_to_proto(value, &attrs[name]);
  if (!with_shapes || node.num_outputs() == 0) return;
  auto* list = attrs["_output_shapes"].mutable_list();
  list->clear_shape();
  for (int i = 0; i < node.num_outputs(); ++i) shape_to_proto(node.output_shape(i), list->add_shape());
}

}  // namespace

void graph_to_proto(const Graph& graph, bool with_shapes, proto::GraphDef* out) {
  for (const Node* n : graph.nodes()) node_to_proto(*n, with_shapes, out->add_node());
  auto* versions = out->mutable_versions();
  versions->set_producer(graph.versions().producer);
  versions->set_min_consumer(graph.versions().min_consumer);
  for (int v : graph.versions().bad_consumers) versions->add_bad_consumers(v);
  if (graph.function_library().empty()) return;
  std::string why;
  SLUICE_CHECK(parse(graph.function_library(), false, out->mutable_library(), &why),
               "function library: ", why);
}

}  // namespace sluice::graph::detail
