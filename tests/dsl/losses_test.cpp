#include "dsl/losses.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl::losses {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

class LossTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor c(std::vector<float> v) { return constant(g, v); }
};

TEST_F(LossTest, Reductions) {
  Tensor l = c({1, 2, 3, 4}), w = c({1, 0, 2, 0});
  auto with = [&](Reduction r) { return compute_weighted_loss(l, {.weights = Operand(w), .reduction = r}); };
  EXPECT_THAT(run(with(Reduction::kNone)), ElementsAre(1, 0, 6, 0));
  EXPECT_THAT(run(with(Reduction::kSum)), ElementsAre(7));
  EXPECT_THAT(run(with(Reduction::kMean)), ElementsAre(FloatEq(7.0f / 3)));
  EXPECT_THAT(run(with(Reduction::kSumByNonzeroWeights)), ElementsAre(3.5f));
  EXPECT_THAT(run(with(Reduction::kSumOverBatchSize)), ElementsAre(1.75f));
  EXPECT_EQ(get_losses(g).size(), 5u);
}

TEST_F(LossTest, AllWeightsZeroGiveZeroNotNan) {
  EXPECT_THAT(run(compute_weighted_loss(c({1, 2}), {.weights = Operand(0.0)})), ElementsAre(0));
}

TEST_F(LossTest, LogLossMatchesItsFormula) {
  Tensor l = log_loss(c({1, 0}), c({0.8f, 0.4f}));
  EXPECT_THAT(run(l),
              ElementsAre(FloatEq(static_cast<float>((-std::log(0.8 + 1e-7) - std::log(0.6 + 1e-7)) / 2))));
  EXPECT_EQ(l.node().name(), "log_loss/value");
}

TEST_F(LossTest, CrossEntropiesOfAMaskedClass) {  // case G23
  float inf = std::numeric_limits<float>::infinity();
  Tensor x = constant(g, std::vector<float>{0, -inf, std::log(3.0f)}, {1, 3});
  Tensor hot = constant(g, std::vector<float>{0, 0, 1}, {1, 3}), label = constant(g, std::vector<int32_t>{2});
  Tensor a = sparse_softmax_cross_entropy(label, x), b = softmax_cross_entropy(hot, x);
  for (Tensor t : {a, b}) {
    EXPECT_THAT(run(t), ElementsAre(::testing::FloatNear(0.287682f, 1e-6f)));
    Output d = dense(gradients({t}, {x})[0]);
    EXPECT_THAT(run(d), ElementsAre(FloatEq(0.25f), 0, FloatEq(-0.25f)));
  }
  EXPECT_EQ(a.node().name(), "sparse_softmax_cross_entropy_loss/value");
  EXPECT_EQ(b.node().name(), "softmax_cross_entropy_loss/value");
}

TEST_F(LossTest, SmoothingAndOthers) {
  Tensor x = constant(g, std::vector<float>{1, 2}, {1, 2}), z = constant(g, std::vector<float>{1, 0}, {1, 2});
  double norm = std::log(std::exp(1.0) + std::exp(2.0));
  EXPECT_THAT(run(softmax_cross_entropy(z, x, {}, 0.2)),
              ElementsAre(FloatEq(static_cast<float>(-(0.9 * (1 - norm) + 0.1 * (2 - norm))))));
  EXPECT_THAT(run(mean_squared_error(c({1, 3}), c({2, 5}))), ElementsAre(2.5f));
  EXPECT_THAT(run(absolute_difference(c({1, 3}), c({2, 5}))), ElementsAre(1.5f));
  EXPECT_THAT(run(hinge_loss(c({1, 0}), c({0.5f, 0.5f}))), ElementsAre(1.0f));
  EXPECT_THAT(run(sigmoid_cross_entropy(c({1, 0}), c({100, -100}))),
              ElementsAre(::testing::FloatNear(0, 1e-40f)));
}

TEST_F(LossTest, TotalLossAddsRegularisation) {
  add_loss(constant(g, 2.0));
  add_loss(constant(g, 3.0), graph::keys::kRegularizationLosses);
  Tensor all = get_total_loss(g), plain = get_total_loss(g, false);
  EXPECT_EQ(all.node().name(), "total_loss");
  EXPECT_THAT(run(all), ElementsAre(5));
  EXPECT_THAT(run(plain), ElementsAre(2));
  Graph empty;
  EXPECT_THAT(error_of([&] { get_total_loss(empty); }), HasSubstr("at least one Tensor"));
  EXPECT_THAT(run(get_regularization_loss(empty)), ElementsAre(0));
}

TEST_F(LossTest, WeightsThatDoNotFitAreRefused) {
  EXPECT_THAT(error_of([&] {
                compute_weighted_loss(c({1, 2}), {.weights = Operand(c({1, 2, 3}))});
              }),
              HasSubstr("weights can not be broadcast to values"));
}

TEST_F(LossTest, AccuracyAndTopK) {
  Tensor x = constant(g, std::vector<float>{1, 2, 3, 3, 2, 1}, {2, 3}),
         y = constant(g, std::vector<int32_t>{2, 1});
  EXPECT_THAT(run(metrics::accuracy(y, x)), ElementsAre(0.5f));
  EXPECT_THAT(run(metrics::top_k_correct(y, x, 1)), ElementsAre(1));
  EXPECT_THAT(run(metrics::top_k_correct(y, x, 2)), ElementsAre(2));
}

}  // namespace
}  // namespace sluice::dsl::losses
