// Gradients of the op-case table: the graph that the gradient pass builds, run in double by the reference
// loops, against central differences of the forward op.

#include <gtest/gtest.h>

#include <cmath>

#include "passes/gradients.h"
#include "runtime/session.h"
#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

using graph::Literal;
using graph::Output;
using runtime::Feed;

class GradientTable : public testing::TestWithParam<OpCase> {};

struct Program {
  graph::Graph g;
  std::vector<Output> inputs;
  Output loss;
};

Output constant(graph::Graph& g, Literal value) {
  const DType t = value.dtype();
  return g.add({.op = "Const", .attrs = {{"dtype", t}, {"value", std::move(value)}}}).output();
}

// loss = sum of output 0 times fixed weights, so that every element of the output counts differently.
void build(const OpCase& c, const std::vector<Array>& values, Program& p) {
  for (const Array& v : values) {
    if (v.dtype() != DType::kFloat && v.dtype() != DType::kDouble) {
      p.inputs.push_back(constant(p.g, v.to_literal()));
      continue;
    }
    p.inputs.push_back(
        p.g.add({.op = "Placeholder", .attrs = {{"dtype", DType::kFloat}, {"shape", graph::Shape(v.dims())}}})
            .output());
  }
  const Output y = p.g.add({.op = c.op, .inputs = p.inputs, .attrs = c.attrs}).output();
  ASSERT_TRUE(y.shape().fully_known()) << y.shape().str();
  std::vector<float> weights;
  std::vector<int32_t> axes;
  for (int64_t i = 0; i < *y.shape().elements(); ++i)
    weights.push_back(0.5f + static_cast<float>(i * 37 % 64) / 64.0f);
  for (int d = 0; d < y.shape().rank(); ++d) axes.push_back(d);
  const Output w = constant(p.g, Literal::from<float>(y.shape().dims(), weights));
  const Output product = p.g.add({.op = "Mul", .inputs = {y, w}}).output();
  p.loss =
      p.g.add({.op = "Sum", .inputs = {product, constant(p.g, Literal::vector<int32_t>(axes))}}).output();
}

TEST_P(GradientTable, AgreesWithCentralDifferences) {
  const OpCase& c = GetParam();
  std::vector<Array> values = make_inputs(c, DType::kDouble);
  Program p;
  ASSERT_NO_FATAL_FAILURE(build(c, values, p));
  std::vector<Output> xs;
  for (int i : c.gradient) xs.push_back(p.inputs[static_cast<size_t>(i)]);
  const std::vector<graph::GradValue> grads = passes::gradients({p.loss}, xs);
  std::vector<Output> dense;
  for (size_t k = 0; k < grads.size(); ++k) {
    ASSERT_FALSE(grads[k].none()) << "no gradient for input " << c.gradient[k];
    dense.push_back(grads[k].is_slices() ? graph::densify(p.g, grads[k].slices) : grads[k].dense);
  }

  runtime::Session session(p.g, {.mode = runtime::PlanMode::kReference64});
  auto feeds = [&] {
    std::vector<Feed> f;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].dtype() == DType::kDouble) f.push_back({p.inputs[i], values[i].clone()});
    return f;
  };
  const std::vector<Array> got = session.run(dense, feeds());
  auto loss = [&] { return session.run({p.loss}, feeds())[0].item<double>(); };

  for (size_t k = 0; k < dense.size(); ++k) {
    Array& x = values[static_cast<size_t>(c.gradient[k])];
    ASSERT_EQ(got[k].dims(), x.dims());
    const int64_t n = x.elements(), step = std::max<int64_t>(1, n / 40);
    for (int64_t i = 0; i < n; i += step) {
      const auto at = static_cast<size_t>(i);
      const double old = x.as<double>()[at], eps = 1e-5 * std::max(1.0, std::fabs(old));
      x.as<double>()[at] = old + eps;
      const double up = loss();
      x.as<double>()[at] = old - eps;
      const double down = loss();
      x.as<double>()[at] = old;
      const double want = (up - down) / (2 * eps);
      EXPECT_NEAR(got[k].cast(DType::kDouble).as<double>()[at], want,
                  c.gradient_tolerance * std::max(1.0, std::fabs(want)))
          << "gradient of input " << c.gradient[k] << ", element " << i;
    }
  }
}

std::vector<OpCase> with_gradient() {
  std::vector<OpCase> list;
  for (OpCase& c : all_cases())
    if (!c.gradient.empty()) list.push_back(std::move(c));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTable, testing::ValuesIn(with_gradient()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::optest
