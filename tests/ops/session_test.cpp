// The op-case table through sessions: the optimized plan (library primitives, fused steps, loop regions)
// gives what the reference plan gives, for the op and for its gradients.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/session_graph.h"

namespace sluice::optest {
namespace {

class PlanTable : public testing::TestWithParam<OpCase> {};

TEST_P(PlanTable, OptimizedPlanAgreesWithTheReferencePlan) {
  const OpCase& c = GetParam();
  const std::vector<Array> values = make_inputs(c, DType::kFloat);
  CaseGraph p(c, values);
  std::vector<graph::Output> fetches;
  for (int i = 0; i < p.node->num_outputs(); ++i) {
    // What a batch norm keeps for its gradient is each kernel's own.
    if (c.op.starts_with("FusedBatchNorm") && i >= 3) break;
    fetches.push_back(p.node->output(i));
  }
  if (!c.gradient.empty())
    for (const graph::Output& d : p.gradients(c)) fetches.push_back(d);

  auto run = [&](runtime::PlanMode mode) {
    runtime::Session session(p.g, {.mode = mode});
    return session.run(fetches, p.feeds(values));
  };
  const std::vector<Array> want = run(runtime::PlanMode::kReference),
                           got = run(runtime::PlanMode::kOptimized);
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k].dtype() == DType::kString) continue;
    const Doubles a = to_doubles(got[k]), b = to_doubles(want[k]);
    ASSERT_EQ(a.dims, b.dims) << fetches[k].name();
    for (int64_t i = 0; i < b.size(); ++i) {
      if (std::isnan(b[i])) {
        EXPECT_TRUE(std::isnan(a[i]))
            << fetches[k].name() << " element " << i << " is " << a[i] << ", not NaN";
      } else if (std::isinf(b[i])) {
        EXPECT_EQ(a[i], b[i]) << fetches[k].name() << " element " << i;
      } else {
        EXPECT_NEAR(a[i], b[i], 8 * c.tolerance * std::max(1.0, std::fabs(b[i])))
            << fetches[k].name() << " element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, PlanTable, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::optest
