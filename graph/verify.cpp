#include "graph/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/loop_frames.h"
#include "graph/node_resolve.h"
#include "graph/scopes.h"

namespace sluice::graph {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), nodes_(graph.nodes()), known_(nodes_.begin(), nodes_.end()) {}

  std::vector<Violation> run() {
    for (const Node* n : nodes_) {
      names(*n);
      if (edges(*n)) types(*n);
      colocation(*n);
    }
    collections();
    if (out_.empty()) order();  // a broken edge would only be reported twice
    return std::move(out_);
  }

 private:
  template <class... P>
  void add(const Node& n, const P&... parts) {
    out_.push_back({n.name(), cat(parts...)});
  }
  bool here(const Node* n) const { return known_.contains(n); }

  void names(const Node& n) {
    if (!is_valid_op_name(n.name())) add(n, "'", n.name(), "' is not a valid node name");
    if (!seen_.insert(n.name()).second) add(n, "Node '", n.name(), "' is not unique");
    if (graph_.find(n.name()) != &n) add(n, "the graph's index does not find the node under its name");
  }

  // True when every edge leads to a node of this graph, so that types may be looked at.
  bool edges(const Node& n) {
    bool sound = true;
    for (int i = 0; i < n.num_inputs(); ++i) {
      const Output& in = n.input(i);
      if (!in) {
        add(n, "input ", i, " is not connected");
        sound = false;
      } else if (!here(in.node)) {
        add(n, "input ", i, " comes from a node that is not in the graph");
        sound = false;
      } else if (in.index < 0 || in.index >= in.node->num_outputs()) {
        add(n, "input ", i, " is output ", in.index, " of '", in.node->name(), "', which has ",
            in.node->num_outputs(), " outputs");
        sound = false;
      } else {
        const auto uses = in.node->uses();
        if (std::find(uses.begin(), uses.end(), Use{const_cast<Node*>(&n), i}) == uses.end())
          add(n, "input ", i, " is missing from the uses of '", in.node->name(), "'");
      }
    }
    std::unordered_set<const Node*> controls;
    for (const Node* c : n.control_inputs()) {
      if (!here(c)) {
        add(n, "a control input is not in the graph");
        sound = false;
      } else if (c == &n) {
        add(n, "the node is its own control input");
      } else if (!controls.insert(c).second) {
        add(n, "control input '", c->name(), "' is stated twice");
      }
    }
    return sound;
  }

  void types(const Node& n) {
    try {
      const ResolvedNode r = resolve_node(n.def(), n.name(), n.inputs(), n.attrs());
      if (!std::equal(r.output_types.begin(), r.output_types.end(), n.output_types().begin(),
                      n.output_types().end()))
        add(n, "the output types do not follow from the op and its attrs");
      for (const auto& [name, value] : r.attrs)
        if (!n.find_attr(name)) add(n, "NodeDef missing attr '", name, "' from Op<name=", n.op(), ">");
    } catch (const Error& e) {
      add(n, e.message());
    }
  }

  void colocation(const Node& n) {
    const AttrValue* v = n.find_attr("_class");
    if (!v) return;
    const auto* list = v->get_if<std::vector<std::string>>();
    if (!list) {
      if (!v->get_if<EmptyList>()) add(n, "attr '_class' is no list of strings");
      return;
    }
    for (const std::string& s : *list)
      if (s.starts_with("loc:@") && !graph_.find(s.substr(5)))
        add(n, "Node '", n.name(), "' expects to be colocated with unknown node '", s.substr(5), "'");
  }

  void collections() {
    for (const std::string& key : graph_.collections().keys()) {
      for (const CollectionItem& item : graph_.collections().get(key)) {
        auto bad = [&](const char* what) {
          out_.push_back({"", cat("collection '", key, "' holds ", what)});
        };
        if (const auto* e = std::get_if<GraphElement>(&item)) {
          if (!here(e->node))
            bad("an element that is not in the graph");
          else if (e->index >= e->node->num_outputs() || e->index < -1)
            bad("an output that its node does not have");
        } else if (const auto* v = std::get_if<std::shared_ptr<VariableInfo>>(&item)) {
          if (!*v || !here((*v)->node)) {
            bad("a variable that is not in the graph");
            continue;
          }
          for (const Node* part : {(*v)->initializer, (*v)->snapshot_node, (*v)->initial_value_node})
            if (part && !here(part)) bad("a variable whose initializer or read is not in the graph");
        }
      }
    }
  }

  void order() {
    try {
      frames(topological_order(graph_));
    } catch (const Error& e) {
      out_.push_back({e.node(), e.message()});
    }
  }

  void frames(const std::vector<Node*>& order) {
    const auto loops = [](const Node* n) { return n->has(kControlFlow); };
    if (std::none_of(order.begin(), order.end(), loops)) return;
    std::unordered_map<const Node*, int> position;
    std::vector<int> places(order.size());
    std::vector<FrameNode> nodes(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& n = *order[i];
      position[&n] = places[i] = static_cast<int>(i);
      nodes[i].name = n.name();
      nodes[i].role = loop_role(n.def());
      const AttrValue* frame = n.find_attr("frame_name");
      if (const auto* name = frame ? frame->get_if<std::string>() : nullptr) nodes[i].frame_name = *name;
      const auto add_input = [&](const Node* from) {
        const auto at = position.find(from);  // what is not there yet comes over a back edge
        if (at != position.end() && at->second < static_cast<int>(i)) nodes[i].inputs.push_back(at->second);
      };
      for (const Output& in : n.inputs()) add_input(in.node);
      for (const Node* c : n.control_inputs()) add_input(c);
    }
    if (const auto fault = find_frame_fault(nodes, places))
      add(*order[static_cast<size_t>(fault->node)], fault->rule);
  }

  const Graph& graph_;
  const std::vector<Node*> nodes_;
  const std::unordered_set<const Node*> known_;
  std::unordered_set<std::string_view> seen_;
  std::vector<Violation> out_;
};

}  // namespace

std::vector<Violation> verify(const Graph& graph) { return Verifier(graph).run(); }

void require_valid(const Graph& graph) {
  const std::vector<Violation> all = verify(graph);
  if (all.empty()) return;
  std::string text = cat("the graph breaks ", all.size(), all.size() == 1 ? " rule:" : " rules:");
  for (size_t i = 0; i < all.size() && i < 5; ++i)
    text += cat(i ? "; " : " ", all[i].node.empty() ? "" : cat("node '", all[i].node, "': "), all[i].rule);
  throw Error(Code::kInvalidArgument, text, all[0].node);
}

}  // namespace sluice::graph
