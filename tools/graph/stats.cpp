// sluice-graph stats: what a graph consists of.
#include <algorithm>
#include <iostream>
#include <map>

#include "tools/graph/commands.h"
#include "tools/graph/files.h"
#include "tools/graph/json.h"

namespace sluice::tools {
namespace {

using namespace graph;

struct Stats {
  int64_t edges = 0, control_edges = 0, constant_bytes = 0, variables = 0, parameters = 0, trainable = 0;
  int64_t unknown_variables = 0;  // whose shape is not fully known
  int depth = 0;
  std::map<std::string, int64_t> ops, devices;
  std::vector<const Node*> sources;
};

Shape variable_shape(const Node& n) { return n.attr_or<Shape>("shape", Shape()); }

Stats count(const Graph& g) {
  Stats s;
  std::map<const Node*, int> depth;
  for (const Node* n : topological_order(g)) {
    ++s.ops[n->op()];
    if (!n->device().empty()) ++s.devices[n->device()];
    s.edges += n->num_inputs();
    s.control_edges += static_cast<int64_t>(n->control_inputs().size());
    int& d = depth[n];
    for (const Output& in : n->inputs()) d = std::max(d, depth[in.node] + 1);
    for (const Node* c : n->control_inputs()) d = std::max(d, depth[c] + 1);
    s.depth = std::max(s.depth, d);
    for (const auto& [name, value] : n->attrs())
      if (const Literal* l = value.get_if<Literal>())
        s.constant_bytes += static_cast<int64_t>(l->size_bytes());
    if (n->has(kSource)) s.sources.push_back(n);
    if (!n->has(kVariable)) continue;
    ++s.variables;
    const auto elements = variable_shape(*n).elements();
    if (elements)
      s.parameters += *elements;
    else
      ++s.unknown_variables;
  }
  for (const auto& v : g.collections().variables(keys::kTrainableVariables))
    if (const auto elements = variable_shape(*v->node).elements()) s.trainable += *elements;
  return s;
}

void print_json(const Graph& g, const Stats& s) {
  Json sources = Json::array(), collections = Json::object();
  for (const Node* n : s.sources)
    sources.push_back({{"name", n->name()},
                       {"dtype", std::string(dtype_name(n->output_type(0)))},
                       {"shape", to_json(n->output_shape(0))}});
  for (const std::string& key : g.collections().keys()) collections[key] = g.collections().get(key).size();
  std::cout << dumped({{"nodes", g.num_nodes()},
                       {"edges", s.edges},
                       {"control_edges", s.control_edges},
                       {"depth", s.depth},
                       {"variables", s.variables},
                       {"parameters", s.parameters},
                       {"trainable_parameters", s.trainable},
                       {"variables_of_unknown_shape", s.unknown_variables},
                       {"constant_bytes", s.constant_bytes},
                       {"producer", g.versions().producer},
                       {"placeholders", sources},
                       {"ops", s.ops},
                       {"devices", s.devices},
                       {"collections", collections}});
}

void print_text(const Graph& g, const Stats& s) {
  std::cout << "nodes            " << g.num_nodes() << "\nedges            " << s.edges << " data, "
            << s.control_edges << " control\ndepth            " << s.depth << "\nvariables        "
            << s.variables << " with " << s.parameters << " elements";
  if (s.unknown_variables) std::cout << " (" << s.unknown_variables << " of unknown shape)";
  std::cout << "\n";
  if (s.trainable) std::cout << "trainable        " << s.trainable << " elements\n";
  std::cout << "constants        " << s.constant_bytes << " bytes\nproducer         " << g.versions().producer
            << '\n';
  for (const Node* n : s.sources)
    std::cout << "placeholder      " << n->name() << "  " << dtype_name(n->output_type(0))
              << n->output_shape(0).str() << '\n';
  for (const auto& [device, n] : s.devices) std::cout << "device           " << device << "  " << n << '\n';
  for (const std::string& key : g.collections().keys())
    std::cout << "collection       " << key << "  " << g.collections().get(key).size() << '\n';
  std::vector<std::pair<std::string, int64_t>> ops(s.ops.begin(), s.ops.end());
  std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [op, n] : ops) std::cout << "op               " << op << "  " << n << '\n';
}

}  // namespace

int run_stats(const std::vector<std::string>& words) {
  Args args("stats", "Counts nodes, edges, ops, variables, parameters and constant bytes.");
  args.positional("FILE", "the graph");
  if (!args.parse(words)) return 0;
  const LoadedGraph loaded = load_graph(args.need("FILE"));
  const Stats s = count(*loaded.graph);
  args.has("json") ? print_json(*loaded.graph, s) : print_text(*loaded.graph, s);
  return 0;
}

}  // namespace sluice::tools
