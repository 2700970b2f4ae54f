#pragma once
// Graph files as the commands read and write them. A file that cannot be read or is damaged is a UsageError
// (exit code 2): it was named on the command line.

#include <memory>
#include <string>
#include <vector>

#include "graph/graphdef.h"
#include "tools/graph/args.h"

namespace sluice::tools {

struct LoadedGraph {
  std::unique_ptr<graph::Graph> graph;
  graph::MetaGraphInfo info;
  bool is_meta = false;
};

LoadedGraph load_graph(const std::string& path);
/// Text when the name ends in "txt", a MetaGraphDef when it ends in ".meta"; a line on stderr says what was
/// written.
void save_graph(const LoadedGraph& loaded, const std::string& path);
/// `bytes` to a file (atomically; UsageError when the directory is missing), or to stdout when the path is
/// empty.
void emit(const std::string& bytes, const std::string& path);

/// The node or output of this name, or a UsageError with near names.
graph::Node& node_named(const graph::Graph& graph, const std::string& name);
/// "x" is "x:0".
graph::Output output_named(const graph::Graph& graph, const std::string& name);
std::vector<graph::Output> outputs_named(const graph::Graph& graph, const std::vector<std::string>& names);

/// Runs f; an Error in it becomes a UsageError.
template <class F>
auto as_usage(F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    throw UsageError(e.message());  // names the node where there is one
  }
}

}  // namespace sluice::tools
