// Fits y = 3x - 1 from the installed library.
#include <cmath>

#include "dsl/dsl.h"

using namespace sluice;

int main() {
  Graph g;
  auto x = dsl::placeholder(g, DType::kFloat, Shape{4}, "x"),
       y = dsl::placeholder(g, DType::kFloat, Shape{4}, "y");
  auto w = dsl::variable(g, "w", dsl::constant(g, 0.0f)), b = dsl::variable(g, "b", dsl::constant(g, 0.0f));
  auto loss = dsl::reduce_mean(dsl::square(x * w + b - y));
  auto& train = dsl::GradientDescentOptimizer(0.1f).minimize(loss);
  Session s(g);
  s.run({}, {}, {&dsl::global_variables_initializer(g)});
  const Array xs = Array::from<float>({4}, {0, 1, 2, 3}), ys = Array::from<float>({4}, {-1, 2, 5, 8});
  for (int i = 0; i < 500; ++i) s.run({}, {{x, xs}, {y, ys}}, {&train});
  return std::abs(s.run({w})[0].item<float>() - 3.0f) < 1e-3f ? 0 : 1;
}
