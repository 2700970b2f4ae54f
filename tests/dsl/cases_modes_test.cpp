// Reported cases (cases.md) whose answer may not depend on how the graph is run: by the reference loops, by
// them in double, or by the optimised plan; with one thread or many.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using runtime::PlanMode;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using Doubles = std::vector<double>;

class CasesInEveryMode : public ::testing::TestWithParam<PlanMode> {
 protected:
  Graph g;
  Tensor in(Shape s, const char* name = "x") { return placeholder(g, DType::kFloat, std::move(s), name); }
  Output grad(const Tensor& y, const Tensor& x) { return dense(gradients({reduce_sum(y)}, {x})[0]); }
  Doubles value(const Output& t, const std::vector<Feed>& feeds) {
    SessionOptions o;
    o.mode = GetParam();
    Session s(g, o);
    const Array a = s.run({t}, feeds)[0];
    if (a.dtype() == DType::kDouble) return {a.as<double>().begin(), a.as<double>().end()};
    return {a.as<float>().begin(), a.as<float>().end()};
  }
};

// Equal, where NaN equals NaN.
void expect_same(const Doubles& got, const Doubles& want, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
    }
  }
}

TEST_P(CasesInEveryMode, G04TheBranchNotTakenGivesNanUnlessItsArgumentIsGuarded) {
  Tensor x = in({1});
  Tensor naive = where(x < 0.0, 1.0 / (2.0 - x), log(x));
  Tensor negative = x < 0.0, one = ones_like(x);
  Tensor guarded = where(negative, 1.0 / (2.0 - where(negative, x, one)), log(where(negative, one, x)));
  Output dn = grad(naive, x), dg = grad(guarded, x);
  const double ln2 = std::log(2.0);
  for (const auto& [at, y, slope, naive_slope] :
       {std::tuple{2.0f, ln2, 0.5, std::nan("")}, {-2.0f, 0.25, 0.0625, 0.0625}}) {
    const std::vector<Feed> feeds{{x, vec({at})}};
    expect_same(value(naive, feeds), {y});
    expect_same(value(guarded, feeds), {y});
    expect_same(value(dg, feeds), {slope});
    expect_same(value(dn, feeds), {naive_slope});  // 0 · inf at 2, as in TensorFlow
  }
}

TEST_P(CasesInEveryMode, G05TiesShareInReduceMaxAndGoToTheFirstInMaxPool) {
  Tensor x = in({4});
  Output a = grad(reduce_max(x), x);
  Output b = grad(max_pool(reshape(x, std::vector<int64_t>{1, 2, 2, 1}), {2, 2}, {2, 2}), x);
  const std::vector<Feed> feeds{{x, vec({5, 7, 7, 7})}};
  expect_same(value(a, feeds), {0, 1.0 / 3, 1.0 / 3, 1.0 / 3});
  expect_same(value(b, feeds), {0, 1, 0, 0});
}

TEST_P(CasesInEveryMode, G12NanWindowsStayInRange) {
  Tensor x = in({1, 1, 4, 1});
  Tensor y = max_pool(x, {1, 2}, {1, 2});
  Output d = grad(y, x);
  const std::vector<Feed> feeds{{x, vec({kNan, kNan, kNan, 1}).reshaped({1, 1, 4, 1})}};
  expect_same(value(y, feeds), {kNan, kNan});
  const Doubles dx = value(d, feeds);
  EXPECT_EQ(dx[0] + dx[1], 1.0);
  EXPECT_EQ(dx[2] + dx[3], 1.0);
}

TEST_P(CasesInEveryMode, G18OneValueAChannelHasNoGradientButBetas) {
  Tensor x = in({1, 1, 1, 3}), dy = in({1, 1, 1, 3}, "dy");
  Tensor gamma = constant(g, std::vector<float>{2, 2, 2}), beta = constant(g, std::vector<float>{1, 2, 3});
  BatchNormOutputs bn = fused_batch_norm(x, gamma, beta);
  GradientOptions o;
  o.grad_ys = {GradValue(dy.output())};
  const auto d = gradients({bn.y}, {x, gamma, beta}, o);
  const std::vector<Feed> feeds{{x, vec({5, -2, 7}).reshaped({1, 1, 1, 3})},
                                {dy, vec({0.5f, -1, 2}).reshaped({1, 1, 1, 3})}};
  expect_same(value(bn.y, feeds), {1, 2, 3});
  expect_same(value(dense(d[0]), feeds), {0, 0, 0});
  expect_same(value(dense(d[1]), feeds), {0, 0, 0});
  expect_same(value(dense(d[2]), feeds), {0.5, -1, 2});
}

TEST_P(CasesInEveryMode, G21RunningProductsDoNotDivideByZero) {
  Tensor x = in({3});
  const auto scan = [&](bool exclusive, bool reverse) -> Tensor {
    return g.add({.op = "Cumprod",
                  .inputs = {x, constant(g, int32_t{0})},
                  .attrs = {{"exclusive", exclusive}, {"reverse", reverse}}});
  };
  const std::vector<Feed> feeds{{x, vec({2, 0, 4})}}, two_zeros{{x, vec({0, 3, 0})}};
  Output forward = grad(scan(false, false), x);
  expect_same(value(forward, feeds), {1, 10, 0});
  expect_same(value(forward, two_zeros), {4, 0, 0});
  expect_same(value(grad(scan(false, true), x), feeds), {0, 12, 1});
  expect_same(value(grad(scan(true, false), x), feeds), {1, 2, 0});
  expect_same(value(grad(scan(true, true), x), feeds), {0, 4, 1});
}

TEST_P(CasesInEveryMode, G24ALabelOutOfRangeIsAnErrorThatNamesIt) {
  Tensor x = in({3, 3}), z = placeholder(g, DType::kInt32, {3}, "z");
  Tensor loss = sparse_softmax_cross_entropy_with_logits(z, x);
  Output d = grad(loss, x);
  for (const auto& [labels, bad] : {std::pair{std::vector<int32_t>{0, 3, -1}, "label value of 3"},
                                    {std::vector<int32_t>{0, -1, 2}, "label value of -1"}}) {
    const std::vector<Feed> feeds{{x, Array::zeros(DType::kFloat, {3, 3})},
                                  {z, Array::from<int32_t>({3}, std::span<const int32_t>(labels))}};
    for (const Output& t : {loss.output(), d})
      EXPECT_THAT(error_of([&] { value(t, feeds); }),
                  AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(bad), HasSubstr("[0, 3)")));
  }
}

TEST_P(CasesInEveryMode, J01ReluKeepsNanAtEveryLength) {
  Tensor x = in({-1});
  Tensor y = relu(x);
  Output d = grad(y, x);
  for (size_t n = 1; n <= 33; ++n) {
    std::vector<float> v;
    Doubles want, slope;
    for (size_t i = 0; i < n; ++i) {
      v.push_back(i % 3 == 0 ? kNan : i % 3 == 1 ? -1.0f : 2.0f);
      want.push_back(i % 3 == 0 ? std::nan("") : i % 3 == 1 ? 0 : 2);
      slope.push_back(i % 3 == 2 ? 1 : 0);  // a comparison with NaN is false
    }
    const std::vector<Feed> feeds{{x, vec(v)}};
    expect_same(value(y, feeds), want);
    expect_same(value(d, feeds), slope);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CasesInEveryMode,
                         ::testing::Values(PlanMode::kReference, PlanMode::kReference64,
                                           PlanMode::kOptimized),
                         [](const auto& info) {
                           return info.param == PlanMode::kReference     ? "reference"
                                  : info.param == PlanMode::kReference64 ? "reference64"
                                                                         : "optimized";
                         });

// Three convolutions, 50 steps of momentum; the losses of every step.
std::vector<float> train(int threads, bool deterministic) {
  Graph g;
  g.set_seed(1);
  std::vector<float> pixels;
  for (int i = 0; i < 8 * 16 * 16 * 3; ++i) pixels.push_back(static_cast<float>(i * 37 % 101) / 50.0f - 1.0f);
  Tensor h = constant(g, pixels, {8, 16, 16, 3});
  for (int depth : {8, 16, 16})
    h = layers::conv2d(h, depth, {3, 3}, {.padding = "SAME", .activation = layers::kRelu});
  h = layers::dense(layers::flatten(layers::max_pooling2d(h, {2, 2}, {2, 2})), 10);
  Tensor labels = constant(g, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  Tensor loss = losses::sparse_softmax_cross_entropy(labels, h);
  train::MomentumOptimizer opt(0.01, 0.9);
  Node& step = opt.minimize(loss);
  SessionOptions o;
  o.intra_op_threads = threads;
  o.deterministic = deterministic;
  Session s(g, o);
  s.run({}, {}, {&global_variables_initializer(g)});
  std::vector<float> all;
  for (int i = 0; i < 50; ++i) all.push_back(floats(s.run({loss}, {}, {&step})[0])[0]);
  return all;
}

TEST(CasesOfThreads, J03DeterministicLossesAreEqualBitForBitAtAnyWidth) {
  const std::vector<float> one = train(1, true);
  EXPECT_LT(one.back(), one.front());
  EXPECT_EQ(one, train(4, true));
  EXPECT_EQ(one, train(16, true));
}

TEST(CasesOfThreads, J03LossesAreEqualBitForBitRunAfterRun) {
  const std::vector<float> one = train(1, false), four = train(4, false);
  EXPECT_EQ(one, train(1, false));
  EXPECT_EQ(four, train(4, false));
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], four[i], 1e-3 * one[i] + 1e-6) << i;
}

}  // namespace
}  // namespace sluice::dsl
