// Loss scaling (benchmark-tool §12), gradient accumulation and noise on gradients.

#include "dsl/train/loss_scale.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/train/accumulation.h"
#include "dsl/train/gradient_noise.h"
#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

class Scaling : public ::testing::Test {
 protected:
  Graph g;
  Variable w = get_variable(g, "w", {2}, {.initializer = ones_initializer()});
  Variable step = get_or_create_global_step(g);
  Tensor fed = placeholder(g, DType::kFloat, {2}, "fed");
  Tensor loss = reduce_sum(multiply(w, fed));
  void init(Session& s) { s.run({}, {}, {&global_variables_initializer(g)}); }
  std::vector<float> value(Session& s, const Variable& v) { return floats(s.run({v.snapshot()})[0]); }
};

TEST_F(Scaling, AFixedScaleComesOutOfTheGradients) {
  GradientDescentOptimizer sgd(0.5);
  LossScaleOptimizer opt(sgd, 64);
  GradsAndVars pairs = opt.compute_gradients(loss);
  EXPECT_FALSE(opt.loss_scale());
  EXPECT_EQ(g.node("loss_scaling/scaled_loss").op(), "Mul");
  Node& n = opt.apply_gradients(pairs, step);
  Session s(g);
  init(s);
  s.run({}, {{fed, vec({1, 2})}}, {&n});
  EXPECT_THAT(value(s, w), ElementsAre(0.5f, 0));
}

TEST_F(Scaling, AScaleOfOneAddsNothing) {
  GradientDescentOptimizer sgd(0.5);
  LossScaleOptimizer opt(sgd, 1);
  const int before = g.num_nodes();
  sgd.compute_gradients(loss);
  const int plain = g.num_nodes() - before;
  opt.compute_gradients(loss);
  EXPECT_EQ(g.num_nodes() - before, 2 * plain);
}

// The vectors of §12: scale 4, N = 10.
TEST_F(Scaling, TheScaleFollowsTheTableOfTheReference) {
  AdamOptimizer adam(0.1);
  LossScaleOptimizer opt(adam, DynamicLossScale{.initial = 4, .increment_every_n = 10});
  Node& n = opt.minimize(loss, step);
  Tensor set = placeholder(g, DType::kInt32, {}, "set");
  Node& counter = assign_op(opt.normal_steps(), set);
  Session s(g);
  init(s);
  auto after = [&](int32_t count, float gradient) {
    s.run({}, {{set, Array::scalar<int32_t>(count)}}, {&counter});
    s.run({}, {{fed, vec({gradient, 1})}}, {&n});
    return std::pair(value(s, opt.loss_scale())[0],
                     s.run({opt.normal_steps().snapshot()})[0].item<int32_t>());
  };
  EXPECT_EQ(after(9, 1), std::pair(4.f, 10));
  EXPECT_EQ(after(10, 1), std::pair(8.f, 0));
  const auto w_before = value(s, w), m_before = value(s, adam.get_slot(w, "m")),
             power = value(s, adam.beta1_power());
  EXPECT_EQ(after(3, kInf), std::pair(4.f, 0));
  // No update: variable, slots, powers and the global step are as they were.
  EXPECT_EQ(value(s, w), w_before);
  EXPECT_EQ(value(s, adam.get_slot(w, "m")), m_before);
  EXPECT_EQ(value(s, adam.beta1_power()), power);
  EXPECT_EQ(s.run({step.snapshot()})[0].item<int64_t>(), 2);
  EXPECT_EQ(after(3, std::numeric_limits<float>::quiet_NaN()), std::pair(2.f, 0));
  EXPECT_EQ(after(0, 1), std::pair(2.f, 1));
  EXPECT_EQ(s.run({step.snapshot()})[0].item<int64_t>(), 3);
}

TEST_F(Scaling, SkippedStepsMayBeCounted) {
  GradientDescentOptimizer sgd(0.5);
  LossScaleOptimizer opt(sgd, DynamicLossScale{.count_skipped_steps = true});
  Node& n = opt.minimize(loss, step);
  Session s(g);
  init(s);
  s.run({}, {{fed, vec({kInf, 1})}}, {&n});
  EXPECT_THAT(value(s, w), ElementsAre(1, 1));
  EXPECT_EQ(s.run({step.snapshot()})[0].item<int64_t>(), 1);
}

TEST_F(Scaling, DynamicScalingTrainsAsTheOptimizerAlone) {
  Graph other;
  Variable v = get_variable(other, "w", {2}, {.initializer = ones_initializer()});
  Tensor in = placeholder(other, DType::kFloat, {2}, "fed");
  MomentumOptimizer plain(0.1, 0.9), inner(0.1, 0.9);
  Node& alone = plain.minimize(reduce_sum(multiply(v, in)));
  LossScaleOptimizer opt(inner, DynamicLossScale{.initial = 8, .increment_every_n = 2});
  Node& scaled = opt.minimize(loss);
  Session a(other), b(g);
  a.run({}, {}, {&global_variables_initializer(other)});
  init(b);
  for (int k = 0; k < 8; ++k) {
    const Array x = vec({0.5f * static_cast<float>(k), 1});
    a.run({}, {{in, x}}, {&alone});
    b.run({}, {{fed, x}}, {&scaled});
  }
  EXPECT_EQ(floats(a.run({v.snapshot()})[0]), value(b, w));  // scales are powers of two
}

TEST_F(Scaling, ASparseGradientThatIsNotFiniteLeavesItsRows) {
  Variable table = get_variable(g, "table", {3, 1}, {.initializer = ones_initializer()});
  Tensor rows = constant(g, std::vector<int32_t>{0, 2});
  AdagradOptimizer inner(0.1);
  LossScaleOptimizer opt(inner, DynamicLossScale{});
  Node& n = opt.minimize(reduce_sum(multiply(squeeze(gather(table, rows), {1}), fed)), {},
                         {.var_list = std::vector<Variable>{table}});
  Session s(g);
  init(s);
  s.run({}, {{fed, vec({kInf, 1})}}, {&n});
  EXPECT_THAT(value(s, table), ElementsAre(1, 1, 1));
  s.run({}, {{fed, vec({1, 1})}}, {&n});
  EXPECT_LT(value(s, table)[0], 1);
  EXPECT_EQ(value(s, table)[1], 1);
}

TEST_F(Scaling, ArgumentsAreChecked) {
  GradientDescentOptimizer sgd(0.5);
  EXPECT_THAT(error_of([&] { LossScaleOptimizer o(sgd, 0); }), HasSubstr("loss scale must be positive"));
  EXPECT_THAT(error_of([&] { LossScaleOptimizer o(sgd, DynamicLossScale{.increment_every_n = -1}); }),
              HasSubstr("increment_every_n"));
  EXPECT_THAT(error_of([&] { GradientAccumulationOptimizer o(sgd, 0); }), HasSubstr("at least 1 step"));
}

using Accumulation = Scaling;

TEST_F(Accumulation, UpdatesByTheMeanEveryNthRun) {
  AdamOptimizer adam(0.1), plain(0.1);
  GradientAccumulationOptimizer opt(adam, 3);
  Node& n = opt.minimize(loss, step);
  Graph other;
  Variable v = get_variable(other, "w", {2}, {.initializer = ones_initializer()});
  Tensor in = placeholder(other, DType::kFloat, {2}, "fed");
  Node& alone = plain.minimize(reduce_sum(multiply(v, in)));
  Session s(g), o(other);
  init(s);
  o.run({}, {}, {&global_variables_initializer(other)});
  for (int round = 0; round < 2; ++round) {
    const auto before = value(s, w);
    for (const float x : {1.f, 2.f}) {
      s.run({}, {{fed, vec({x, -x})}}, {&n});
      EXPECT_EQ(value(s, w), before);
    }
    EXPECT_EQ(s.run({step.snapshot()})[0].item<int64_t>(), round);
    EXPECT_THAT(value(s, opt.accumulator(w)), ElementsAre(3, -3));
    s.run({}, {{fed, vec({6, -6})}}, {&n});
    o.run({}, {{in, vec({3, -3})}}, {&alone});
    const auto got = value(s, w), want = floats(o.run({v.snapshot()})[0]);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6);
    EXPECT_THAT(value(s, opt.accumulator(w)), ElementsAre(0, 0));
    EXPECT_EQ(s.run({step.snapshot()})[0].item<int64_t>(), round + 1);
  }
}

TEST_F(Accumulation, TwoOpsForALoopOfOnesOwn) {
  GradientDescentOptimizer sgd(1.0);
  GradientAccumulationOptimizer opt(sgd, 2, {.average = false});
  EXPECT_THAT(error_of([&] { opt.apply(); }), HasSubstr("needs accumulate to be called first"));
  Node& add = opt.accumulate(opt.compute_gradients(loss));
  Node& apply = opt.apply(step);
  EXPECT_EQ(opt.accumulator(w).name(), "w/GradientAccumulation");
  Session s(g);
  init(s);
  for (const float x : {1.f, 2.f}) s.run({}, {{fed, vec({x, 0})}}, {&add});
  s.run({}, {}, {&apply});
  EXPECT_THAT(value(s, w), ElementsAre(-2, 1));
  EXPECT_THAT(value(s, opt.accumulator(w)), ElementsAre(0, 0));
}

TEST_F(Accumulation, SparseGradientsAddToTheirRows) {
  Variable table = get_variable(g, "table", {3, 1}, {.initializer = zeros_initializer()});
  Tensor rows = placeholder(g, DType::kInt32, {2}, "rows");
  GradientDescentOptimizer sgd(1.0);
  GradientAccumulationOptimizer opt(sgd, 2, {.average = false});
  Node& n = opt.minimize(reduce_sum(gather(table, rows)), {}, {.var_list = std::vector<Variable>{table}});
  Session s(g);
  init(s);
  s.run({}, {{rows, Array::from<int32_t>({2}, {0, 0})}}, {&n});
  s.run({}, {{rows, Array::from<int32_t>({2}, {0, 2})}}, {&n});
  EXPECT_THAT(value(s, table), ElementsAre(-3, 0, -1));
}

TEST_F(Scaling, NoiseIsDrawnAnewForEachStepAndLeavesNoneAlone) {
  Variable unused = get_variable(g, "unused", {2});
  GradientDescentOptimizer sgd(1.0);
  GradsAndVars pairs = sgd.compute_gradients(loss);
  const GradsAndVars noisy = add_gradient_noise(pairs, 0.1, 7);
  EXPECT_TRUE(noisy[1].grad.none());
  Session s(g);
  init(s);
  auto draw = [&] { return floats(s.run({noisy[0].grad.dense}, {{fed, vec({1, 2})}})[0]); };
  const auto a = draw(), b = draw();
  EXPECT_NE(a, b);
  EXPECT_NEAR(a[0], 1, 0.2f);  // cut at two standard deviations
  EXPECT_NEAR(a[1], 2, 0.2f);
  const Tensor scale = annealed_noise_scale(step, 0.01, 0.5);
  EXPECT_NEAR(floats(s.run({scale})[0])[0], 0.1f, 1e-6);
  EXPECT_FALSE(gradient_noise_fn(scale)(pairs)[0].grad.none());
}

TEST_F(Scaling, NoiseKeepsASparseGradientSparse) {
  Variable table = get_variable(g, "table", {3, 1});
  Tensor rows = placeholder(g, DType::kInt32, {-1}, "rows");
  GradientDescentOptimizer sgd(1.0);
  const GradsAndVars noisy = add_gradient_noise(
      sgd.compute_gradients(reduce_sum(gather(table, rows)), {.var_list = std::vector<Variable>{table}}),
      0.1);
  ASSERT_TRUE(noisy[0].grad.is_slices());
  Session s(g);
  init(s);
  const Array v = s.run({noisy[0].grad.slices.values}, {{rows, Array::from<int32_t>({2}, {1, 2})}})[0];
  EXPECT_EQ(v.dims(), (Dims{2, 1}));
}

}  // namespace
}  // namespace sluice::dsl::train
