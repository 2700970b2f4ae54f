#include "tools/graph/files.h"

#include <iostream>

#include "graph/support/file.h"
#include "graph/support/near.h"

namespace sluice::tools {

using namespace graph;

LoadedGraph load_graph(const std::string& path) {
  LoadedGraph out{.graph = std::make_unique<Graph>(standard_ops())};
  as_usage([&] { out.info = read_graph_file(*out.graph, path); });
  out.is_meta = out.info.saver || !out.info.tags.empty() || !out.graph->collections().keys().empty();
  return out;
}

void save_graph(const LoadedGraph& loaded, const std::string& path) {
  const bool text = path.ends_with("txt"), meta = path.ends_with(".meta");
  as_usage([&] { require_writable(path); });
  if (meta)
    write_meta_graph_file(*loaded.graph, loaded.info, path);
  else
    write_graph_file(*loaded.graph, path);
  std::cerr << "wrote " << path << ": " << (text ? "text " : "binary ")
            << (meta ? "MetaGraphDef, " : "GraphDef, ") << loaded.graph->num_nodes() << " nodes\n";
}

void emit(const std::string& bytes, const std::string& path) {
  if (path.empty()) {
    std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return;
  }
  as_usage([&] { require_writable(path); });
  write_file_atomically(path, bytes);
}

namespace {

std::string near(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const Node* n : graph.nodes()) names.push_back(n->name());
  return did_you_mean(name, names);
}

}  // namespace

Node& node_named(const Graph& graph, const std::string& name) {
  const std::string plain = name.substr(0, name.find(':'));
  Node* n = graph.find(plain);
  if (!n) throw UsageError(cat("there is no node '", plain, "' in the graph.", near(graph, plain)));
  return *n;
}

Output output_named(const Graph& graph, const std::string& name) {
  Node& n = node_named(graph, name);
  if (name.find(':') != std::string::npos) return as_usage([&] { return graph.output(name); });
  if (n.num_outputs() == 0) throw UsageError(cat("node '", name, "' (", n.op(), ") has no output"));
  return n.output(0);
}

std::vector<Output> outputs_named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Output> out;
  for (const std::string& name : names) out.push_back(output_named(graph, name));
  return out;
}

}  // namespace sluice::tools
