#include "tools/graph/dot.h"

namespace sluice::tools {

using namespace graph;

namespace {

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (c == '\n')
      s += "\\n";
    else if (static_cast<unsigned char>(c) >= 0x20)
      s += c;
  }
  return s + '"';
}

const char* colour(const Node& n) {
  if (n.has(kVariable)) return "lightgoldenrod1";
  if (n.has(kSource)) return "palegreen";
  if (n.has(kWritesVariable)) return "lightsalmon";
  if (n.has(kStateful)) return "thistle";
  if (n.num_inputs() == 0) return "gray90";
  return "white";
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string s =
      "digraph graph_file {\n  rankdir=TB;\n  node [shape=box, style=\"filled,rounded\", fontsize=10];\n"
      "  edge [fontsize=8];\n";
  for (const Node* n : graph.nodes())
    s += cat("  n", n->id(), " [label=", quoted(cat(n->name(), "\n", n->op())), ", fillcolor=", colour(*n),
             "];\n");
  for (const Node* n : graph.nodes()) {
    for (const Output& in : n->inputs())
      s += cat("  n", in.node->id(), " -> n", n->id(),
               " [label=", quoted(cat(in.index > 0 ? cat(":", in.index, " ") : "", in.dtype(), in.shape())),
               "];\n");
    for (const Node* c : n->control_inputs())
      s += cat("  n", c->id(), " -> n", n->id(), " [style=dashed];\n");
  }
  return s + "}\n";
}

}  // namespace sluice::tools
