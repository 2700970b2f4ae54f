// Lesson 8: an op of your own, with its gradient.
//
// An op is a definition (types, shape rule, gradient) and a kernel. Both are handed in by value: nothing is
// global. What you see here:
//   * the gradient is written with ops, so it can be differentiated again, clipped, and seen in the graph;
//   * the kernel writes into memory that the plan gave it and allocates nothing;
//   * check_gradient compares the gradient with differences of values.

#include <iostream>

#include "dsl/dsl.h"
#include "graph/infer.h"
#include "runtime/kernel.h"
#include "tools/lessons/lesson.h"

namespace graph = sluice::graph;
namespace runtime = sluice::runtime;
using namespace sluice::dsl;

namespace {

// Swish: y = x · sigmoid(x). Elementwise, so the output has the input's shape.
graph::OpRegistry ops_with_swish() {
  graph::OpRegistry ops = graph::standard_ops();
  ops.add({.name = "Swish",
           .inputs = {"x: T"},
           .outputs = {"y: T"},
           .attrs = {"T: {float, double}"},
           .doc = "x times its sigmoid.",
           .traits = graph::kElementwise,
           .infer = graph::same_shape,
           .grad = [](graph::Grad& b) {
             // y' = s + y · (1 - s), with s = sigmoid(x).
             const auto s = b.op("Sigmoid", {b.x()});
             const auto rest = b.op("Sub", {b.scalar_like(s, 1.0), s});
             const auto slope = b.op("Add", {s, b.op("Mul", {b.y(), rest})});
             return graph::Gradients{b.op("Mul", {b.dy(), slope})};
           }});
  return ops;
}

template <class T>
void swish_of(runtime::KernelRun& r) {
  const T* x = r.in<T>(0);
  T* y = r.out<T>(0);
  r.queue().parallel_for(r.in_spec(0).elements(), 4096, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) y[i] = x[i] / (T(1) + std::exp(-x[i]));
  });
}

// Doubles come when a graph of floats is run in double: SLUICE_PLAN=reference64, and check_gradient below.
void swish(runtime::KernelRun& r) {
  r.in_dtype(0) == DType::kDouble ? swish_of<double>(r) : swish_of<float>(r);
}

}  // namespace

int main() {
  Graph g(ops_with_swish());
  runtime::KernelRegistry kernels = runtime::standard_kernels();
  // {0, 0}: the output may take the bytes of the input when nobody else needs them.
  kernels.add({.op = "Swish", .name = "mine", .make = runtime::plain(swish, {{0, 0}}), .reference = true});

  Tensor x = placeholder(g, DType::kFloat, {3}, "x");
  Tensor y(g.add({.op = "Swish", .name = "y", .inputs = {x}}).output());
  Tensor dx = gradients({y}, {x})[0].dense;

  Session session(g, {.kernels = &kernels});
  Array at = Array::from<float>({3}, {-1, 0, 2});
  auto out = session.run({y, dx}, {{x, at}});
  std::cout << "swish(2) = " << out[0].as<float>()[2] << ", slope " << out[1].as<float>()[2] << '\n';
  EXPECT_THAT_HERE(lesson::near(out[0].as<float>()[2], 1.7615942, 1e-5));
  EXPECT_THAT_HERE(lesson::near(out[1].as<float>()[1], 0.5, 1e-6));
  EXPECT_THAT_HERE(lesson::near(out[1].as<float>()[2], 1.0907843, 1e-5));

  GradientCheck check = check_gradient(y, x, at, {.kernels = &kernels});
  std::cout << "largest error against differences: " << check.max_error << '\n';
  EXPECT_THAT_HERE(check.max_error < 1e-6);
  return 0;
}
