// Gradients of the op-case table: the graph that the gradient pass builds, run in double by the reference
// loops, against central differences of the forward op.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/session_graph.h"

namespace sluice::optest {
namespace {

class GradientTable : public testing::TestWithParam<OpCase> {};

TEST_P(GradientTable, AgreesWithCentralDifferences) {
  const OpCase& c = GetParam();
  std::vector<Array> values = make_inputs(c, DType::kDouble);
  CaseGraph p(c, values);
  const std::vector<graph::Output> dense = p.gradients(c);
  runtime::Session session(p.g, {.mode = runtime::PlanMode::kReference64});
  const std::vector<Array> got = session.run(dense, p.feeds(values));
  auto loss = [&] { return session.run({p.loss}, p.feeds(values))[0].item<double>(); };

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
