// insert_gradients IN.pb OUT.pb: adds our gradients to a graph that follows op_gradients.py's names, so that
// TensorFlow can run them. Outputs are y0, y1, …, their gradients the constants dy0, dy1, …, and every
// floating placeholder x gets an Identity "dx" of its gradient where there is one.

#include <iostream>

#include "graph/graphdef.h"
#include "graph/support/check.h"
#include "passes/gradients.h"

namespace {

using namespace sluice;

void insert(const std::string& from, const std::string& to) {
  graph::Graph g;
  graph::read_graph_file(g, from);
  std::vector<graph::Output> ys, xs;
  passes::GradientOptions options;
  for (int i = 0; g.find(cat("y", i)); ++i) {
    ys.push_back(g.output(cat("y", i, ":0")));
    options.grad_ys.emplace_back(g.output(cat("dy", i, ":0")));
  }
  for (int i = 0; graph::Node* x = g.find(cat("x", i)); ++i)
    if (graph::is_floating(x->output().dtype())) xs.push_back(x->output());
  const std::vector<graph::GradValue> grads = passes::gradients(ys, xs, options);
  for (size_t i = 0; i < xs.size(); ++i) {
    if (grads[i].none()) continue;
    const graph::Output dx = grads[i].is_slices() ? graph::densify(g, grads[i].slices) : grads[i].dense;
    g.add({.op = "Identity", .name = "d" + xs[i].node->name(), .inputs = {dx}});
  }
  graph::write_graph_file(g, to);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: insert_gradients IN.pb OUT.pb\n";
    return 2;
  }
  try {
    insert(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
