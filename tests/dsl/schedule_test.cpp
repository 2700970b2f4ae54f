#include "dsl/train/schedule.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::HasSubstr;

class ScheduleTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor step = placeholder(g, DType::kInt64, {}, "step");
  double at(const Tensor& t, int64_t s) {
    Session session(g);
    return floats(session.run({t}, {{step, Array::scalar<int64_t>(s)}})[0])[0];
  }
};

TEST_F(ScheduleTest, Exponential) {
  Tensor smooth = exponential_decay(0.1, step, 100, 0.96),
         stairs = exponential_decay(0.1, step, 100, 0.96, true);
  EXPECT_NEAR(at(smooth, 150), 0.1 * std::pow(0.96, 1.5), 1e-7);
  EXPECT_NEAR(at(stairs, 150), 0.1 * 0.96, 1e-7);
  EXPECT_EQ(smooth.node().name(), "ExponentialDecay");
}

TEST_F(ScheduleTest, NaturalAndInverse) {
  EXPECT_NEAR(at(natural_exp_decay(0.1, step, 100, 0.5), 150), 0.1 * std::exp(-0.75), 1e-7);
  EXPECT_NEAR(at(inverse_time_decay(0.1, step, 100, 0.5), 150), 0.1 / 1.75, 1e-7);
  EXPECT_NEAR(at(inverse_time_decay(0.1, step, 100, 0.5, true), 150), 0.1 / 1.5, 1e-7);
}

TEST_F(ScheduleTest, Polynomial) {
  Tensor p = polynomial_decay(0.1, step, 100, {.end_learning_rate = 0.01, .power = 2});
  EXPECT_NEAR(at(p, 50), 0.09 * 0.25 + 0.01, 1e-7);
  EXPECT_NEAR(at(p, 500), 0.01, 1e-7);
  Tensor c = polynomial_decay(0.1, step, 100, {.end_learning_rate = 0.01, .cycle = true});
  EXPECT_NEAR(at(c, 0), 0.1, 1e-7);
  EXPECT_NEAR(at(c, 150), 0.09 * 0.25 + 0.01, 1e-7);
}

TEST_F(ScheduleTest, PiecewiseBelongsToTheLeft) {
  Tensor p = piecewise_constant(step, {10, 20}, {1.0, 0.5, 0.1});
  EXPECT_FLOAT_EQ(at(p, 10), 1.0);
  EXPECT_FLOAT_EQ(at(p, 11), 0.5);
  EXPECT_FLOAT_EQ(at(p, 20), 0.5);
  EXPECT_FLOAT_EQ(at(p, 21), 0.1f);
  EXPECT_THAT(error_of([&] { piecewise_constant(step, {10}, {1.0}); }), HasSubstr("1 less than"));
  EXPECT_THAT(error_of([&] {
                piecewise_constant(step, {1.5}, {1.0, 2.0});
              }),
              HasSubstr("must have the same dtype as x"));
}

TEST_F(ScheduleTest, Cosines) {
  double pi = 3.14159265358979;
  EXPECT_NEAR(at(cosine_decay(0.1, step, 100, 0.2), 25), 0.1 * (0.8 * 0.5 * (1 + std::cos(pi / 4)) + 0.2),
              1e-7);
  Tensor r = cosine_decay_restarts(0.1, step, 100);
  EXPECT_NEAR(at(r, 50), 0.05, 1e-6);
  EXPECT_NEAR(at(r, 200), 0.05, 1e-6);  // the second period lasts 200 steps
  EXPECT_NEAR(at(cosine_decay_restarts(0.1, step, 100, {.t_mul = 1, .m_mul = 0.5}), 150), 0.025, 1e-6);
  double linear = 0.75, wave = 0.5 * (1 + std::cos(pi * 0.25));
  EXPECT_NEAR(at(linear_cosine_decay(0.1, step, 100), 25), 0.1 * (linear * wave + 0.001), 1e-7);
}

TEST_F(ScheduleTest, AStepIsRequired) {
  EXPECT_THAT(error_of([&] { exponential_decay(0.1, 5, 100, 0.9); }),
              HasSubstr("global_step is required for ExponentialDecay."));
}

}  // namespace
}  // namespace sluice::dsl::train
