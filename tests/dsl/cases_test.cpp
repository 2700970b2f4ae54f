// Cases that users of other systems reported (cases.md), told through the DSL: values and gradients.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Cases : public ::testing::Test {
 protected:
  Graph g;
  Tensor in(Shape s, const char* name = "x") { return placeholder(g, DType::kFloat, std::move(s), name); }
  Output grad(const Tensor& y, const Tensor& x) { return dense(gradients({reduce_sum(y)}, {x})[0]); }
  Array shaped(std::vector<float> v, Dims d) { return vec(std::move(v)).reshaped(std::move(d)); }
};

TEST_F(Cases, G05TiesShareInReduceMaxAndGoToTheFirstInMaxPool) {
  Tensor x = in({4});
  Output a = grad(reduce_max(x), x);
  Output b = grad(max_pool(reshape(x, std::vector<int64_t>{1, 2, 2, 1}), {2, 2}, {2, 2}), x);
  std::vector<Feed> feeds{{x, vec({5, 7, 7, 7})}};
  float third = 1.0f / 3;
  EXPECT_THAT(run(a, feeds), ElementsAre(0, FloatEq(third), FloatEq(third), FloatEq(third)));
  EXPECT_THAT(run(b, feeds), ElementsAre(0, 1, 0, 0));
}

TEST_F(Cases, G10AveragePoolDividesByTheCellsInside) {
  Tensor x = in({1, 3, 3, 1});
  Tensor y = avg_pool(x, {2, 2}, {2, 2}, {.padding = "SAME"});
  Output d = grad(y, x);
  std::vector<Feed> feeds{{x, shaped({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(3, 4.5f, 7.5f, 9));
  EXPECT_THAT(run(d, feeds), ElementsAre(.25f, .25f, .5f, .25f, .25f, .5f, .5f, .5f, 1));
}

TEST_F(Cases, G11PaddingNeverWinsAMaxPool) {
  Tensor x = in({1, 3, 3, 1});
  Tensor y = max_pool(x, {2, 2}, {2, 2}, {.padding = "SAME"});
  Output d = grad(y, x);
  std::vector<Feed> feeds{{x, shaped({-5, -6, -7, -8, -9, -1, -2, -3, -4}, {1, 3, 3, 1})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(-5, -1, -2, -4));
  EXPECT_THAT(run(d, feeds), ElementsAre(1, 0, 0, 0, 0, 1, 1, 0, 1));
}

TEST_F(Cases, G12NanWindowsStayInRange) {
  Tensor x = in({1, 1, 4, 1});
  Tensor y = max_pool(x, {1, 2}, {1, 2});
  Output d = grad(y, x);
  std::vector<Feed> feeds{{x, shaped({kNan, kNan, kNan, 1}, {1, 1, 4, 1})}};
  for (float v : run(y, feeds)) EXPECT_TRUE(std::isnan(v));
  float total = 0;
  for (float v : run(d, feeds)) total += v;
  EXPECT_EQ(total, 2.0f);
}

TEST_F(Cases, G14SamePaddingPutsTheOddCellAfter) {
  Tensor x = in({1, 4, 1, 1}), k = in({3, 1, 1, 1}, "k");
  Tensor y = conv2d(x, k, {.strides = {2, 1}});
  auto d = gradients({reduce_sum(y)}, {x, k});
  std::vector<Feed> feeds{{x, shaped({1, 2, 3, 4}, {1, 4, 1, 1})}, {k, shaped({1, 10, 100}, {3, 1, 1, 1})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(321, 43));
  EXPECT_THAT(run(dense(d[0]), feeds), ElementsAre(1, 10, 101, 10));
  EXPECT_THAT(run(dense(d[1]), feeds), ElementsAre(4, 6, 3));
}

TEST_F(Cases, G16AStrideThatLeavesTheEdgeGivesItNoGradient) {
  Tensor x = in({1, 6, 6, 1});
  Output d = grad(conv2d(x, ones(g, {3, 3, 1, 1}), {.strides = {2, 2}, .padding = "VALID"}), x);
  std::vector<float> v = run(d, {{x, Array::zeros(DType::kFloat, {1, 6, 6, 1})}});
  const float c[6] = {1, 1, 2, 1, 1, 0};
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 6; ++j) EXPECT_EQ(v[6 * i + j], c[i] * c[j]) << i << "," << j;
  }
}

TEST_F(Cases, G20BatchNormGradients) {
  Tensor x = in({3, 1, 1, 1}), dy = in({3, 1, 1, 1}, "dy");
  Tensor gamma = constant(g, std::vector<float>{2}), beta = constant(g, std::vector<float>{0});
  BatchNormOutputs bn = fused_batch_norm(x, gamma, beta, {.epsilon = 0});
  GradientOptions o;
  o.grad_ys = {GradValue(dy.output())};
  auto d = gradients({bn.y}, {x, gamma, beta}, o);
  std::vector<Feed> feeds{{x, shaped({1, 3, 8}, {3, 1, 1, 1})}, {dy, shaped({1, 0, 2}, {3, 1, 1, 1})}};
  EXPECT_THAT(run(dense(d[2]), feeds), ElementsAre(FloatEq(3)));
  EXPECT_THAT(run(dense(d[1]), feeds), ElementsAre(FloatNear(1.698416f, 1e-5f)));
  EXPECT_THAT(run(dense(d[0]), feeds), ElementsAre(FloatNear(.391942f, 1e-5f), FloatNear(-.548719f, 1e-5f),
                                                   FloatNear(.156777f, 1e-5f)));
}

TEST_F(Cases, G21ProductGradientsDoNotDivide) {
  Tensor x = in({3});
  Output d = grad(reduce_prod(x), x);
  EXPECT_THAT(run(d, {{x, vec({2, 0, 4})}}), ElementsAre(0, 8, 0));
  EXPECT_THAT(run(d, {{x, vec({0, 0, 4})}}), ElementsAre(0, 0, 0));
}

TEST_F(Cases, G24ALabelOutOfRangeIsAnErrorThatNamesIt) {
  Tensor x = in({3, 3}), z = placeholder(g, DType::kInt32, {3}, "z");
  Tensor loss = sparse_softmax_cross_entropy_with_logits(z, x);
  Output d = grad(loss, x);
  std::vector<int32_t> labels{0, 3, -1};
  std::vector<Feed> feeds{{x, Array::zeros(DType::kFloat, {3, 3})},
                          {z, Array::from<int32_t>({3}, std::span<const int32_t>(labels))}};
  auto expected = AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("label value of 3"), HasSubstr("[0, 3)"));
  EXPECT_THAT(error_of([&] { run(loss, feeds); }), expected);
  EXPECT_THAT(error_of([&] { run(d, feeds); }), expected);
}

TEST_F(Cases, G26AParameterOfASigmoidKeepsItsShape) {
  Tensor x = constant(g, std::vector<float>{1, 0, 2, -1}, {2, 2}), beta = in({2}, "beta");
  Output d = grad(x * sigmoid(beta * x), beta);
  EXPECT_THAT(run(d, {{beta, vec({.5f, 2})}}),
              ElementsAre(FloatNear(1.021451f, 1e-5f), FloatNear(0.104994f, 1e-5f)));
}

TEST_F(Cases, J01ReluKeepsNanAtEveryLength) {
  Tensor x = in({-1});
  Tensor y = relu(x);
  Output d = grad(y, x);
  for (size_t n = 1; n <= 33; ++n) {
    std::vector<float> v;
    for (size_t i = 0; i < n; ++i) v.push_back(i % 3 == 0 ? kNan : i % 3 == 1 ? -1.0f : 2.0f);
    Session s(g);
    auto out = s.run({y, d}, {{x, vec(v)}});
    std::vector<float> a = floats(out[0]), b = floats(out[1]);
    for (size_t i = 0; i < n; ++i) {
      if (i % 3 == 0) {
        EXPECT_TRUE(std::isnan(a[i])) << n << " " << i;
      } else {
        EXPECT_EQ(a[i], i % 3 == 1 ? 0.0f : 2.0f) << n << " " << i;
      }
      EXPECT_EQ(b[i], i % 3 == 2 ? 1.0f : 0.0f) << n << " " << i;  // the comparison with NaN is false
    }
  }
}

TEST_F(Cases, G23AllLogitsMaskedIsNan) {
  Tensor x = constant(g, std::vector<float>{-kInf, -kInf}, {1, 2});
  Tensor loss = sparse_softmax_cross_entropy_with_logits(constant(g, std::vector<int32_t>{0}), x);
  EXPECT_TRUE(std::isnan(run(loss)[0]));
}

TEST_F(Cases, N04ChecksRefuseLoopsByName) {
  Tensor x = in({2}), p = placeholder(g, DType::kBool, {}, "p");
  g.add({.op = "Switch", .name = "cond/Switch", .inputs = {x, p}});
  EXPECT_THAT(error_of([&] { add_check_numerics_ops(g); }),
              AllOf(HasSubstr("is not compatible with TensorFlow control flow operations"),
                    HasSubstr("'cond/Switch'")));
}

TEST_F(Cases, C01AReadHasItsPlaceInTheOrder) {
  Variable v = get_variable(g, "v", {},
                            {.dtype = DType::kInt32, .initializer = zeros_initializer(), .trainable = false});
  Tensor old = v.read_value(), next;
  {
    ControlDependencies after(g, {&old.node()});
    next = assign(v, v.value() + 1);
  }
  Session s(g);
  s.run({}, {}, {&v.initializer()});
  for (int i = 0; i < 100; ++i) {
    auto out = s.run({old, next});
    EXPECT_EQ(out[0].as<int32_t>()[0], i);
    EXPECT_EQ(out[1].as<int32_t>()[0], i + 1);
  }
}

TEST_F(Cases, C04InitialiseThenReadInOneRun) {
  Variable v = get_variable(g, "v", {}, {.initializer = constant_initializer(7)});
  ControlDependencies after(g, {&v.initializer()});
  Tensor r = v.read_value();
  for (int i = 0; i < 50; ++i) EXPECT_THAT(run(r), ElementsAre(7));
}

TEST_F(Cases, C09ATensorFetchedTwiceRunsOnce) {
  Variable v = get_variable(g, "v", {}, {.initializer = zeros_initializer()});
  Tensor inc = assign_add(v, 1.0), ten = inc * 10.0;
  Session s(g);
  s.run({}, {}, {&v.initializer()});
  auto out = s.run({inc, inc, ten});
  EXPECT_EQ(floats(out[0])[0], 1.0f);
  EXPECT_EQ(floats(out[1])[0], 1.0f);
  EXPECT_EQ(floats(out[2])[0], 10.0f);
  EXPECT_THAT(floats(s.run({v.snapshot()})[0]), ElementsAre(1));
}

}  // namespace
}  // namespace sluice::dsl
