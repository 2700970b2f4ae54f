// What a stranger does from their own program: an op "Cube" with shape rule, gradient and kernel, and a pass
// that replaces x * x * x by it. Exits 0 when values, gradient and pass are right.

#include <cmath>
#include <cstdio>

#include "dsl/dsl.h"
#include "graph/infer.h"
#include "graph/verify.h"

namespace graph = sluice::graph;
namespace runtime = sluice::runtime;
using namespace sluice::dsl;

namespace {

graph::OpRegistry my_ops() {
  graph::OpRegistry ops = graph::standard_ops();
  ops.add({.name = "Cube",
           .inputs = {"x: T"},
           .outputs = {"y: T"},
           .attrs = {"T: {float}"},
           .doc = "x to the third power.",
           .traits = graph::kElementwise,
           .infer = graph::same_shape,
           .grad = [](graph::Grad& g) {
             const auto three = g.scalar_like(g.x(), 3.0);
             const auto slope = g.op("Mul", {three, g.op("Square", {g.x()})});
             return graph::Gradients{g.op("Mul", {g.dy(), slope})};
           }});
  return ops;
}

void cube(runtime::KernelRun& r) {
  const float* x = r.in<float>(0);
  float* y = r.out<float>(0);
  const int64_t n = r.in_spec(0).elements();
  r.queue().parallel_for(n, 4096, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) y[i] = x[i] * x[i] * x[i];
  });
}

runtime::KernelRegistry my_kernels() {
  runtime::KernelRegistry kernels = runtime::standard_kernels();
  kernels.add({.op = "Cube", .name = "mine", .make = runtime::plain(cube, {{0, 0}}), .reference = true});
  return kernels;
}

/// (x * x) * x becomes Cube(x); returns how many.
int use_cubes(graph::Graph& g) {
  int changed = 0;
  for (graph::Node* n : g.nodes()) {
    if (n->op() != "Mul" || n->input(0).node->op() != "Mul") continue;
    const graph::Node& inner = *n->input(0).node;
    if (inner.input(0) != inner.input(1) || inner.input(0) != n->input(1)) continue;
    graph::Node& cube_node = g.add({.op = "Cube", .name = n->name() + "_cube", .inputs = {n->input(1)}});
    g.replace_uses(n->output(), cube_node.output());
    g.remove(*n);
    ++changed;
  }
  return changed;
}

bool near(float a, float b) { return std::abs(a - b) < 1e-5f; }

}  // namespace

int main() {
  Graph g(my_ops());
  Tensor x = placeholder(g, DType::kFloat, {2}, "x");
  Tensor y = identity(x * x * x, "y");
  if (use_cubes(g) != 1 || use_cubes(g) != 0) return std::puts("the pass did not find its pattern once"), 1;
  if (!graph::verify(g).empty()) return std::puts("the pass broke the graph"), 1;
  const auto dx = gradients({y}, {x});
  const auto kernels = my_kernels();
  Session s(g, {.kernels = &kernels});
  const auto out = s.run({y, dx[0].dense}, {{x, Array::from<float>({2}, {2.0f, -1.5f})}});
  const auto v = out[0].as<float>(), d = out[1].as<float>();
  const bool ok = near(v[0], 8) && near(v[1], -3.375f) && near(d[0], 12) && near(d[1], 6.75f);
  return ok ? 0 : (std::puts("wrong value or gradient"), 1);
}
