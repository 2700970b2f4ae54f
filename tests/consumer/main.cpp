// Fits y = 3x - 1 with the installed library.
#include <cmath>

#include "dsl/dsl.h"

using namespace sluice::dsl;

int main() {
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {4}, "x"), y = placeholder(g, DType::kFloat, {4}, "y");
  Variable w = get_variable(g, "w", {}), b = get_variable(g, "b", {});
  Tensor loss = reduce_mean(square(x * w + b - y));
  Node& step = train::GradientDescentOptimizer(0.1).minimize(loss);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  Array xs = Array::from<float>({4}, {0, 1, 2, 3}), ys = Array::from<float>({4}, {-1, 2, 5, 8});
  for (int i = 0; i < 500; ++i) s.run({}, {{x, xs}, {y, ys}}, {&step});
  return std::abs(s.run({w.value()})[0].item<float>() - 3.0f) < 1e-3f ? 0 : 1;
}
