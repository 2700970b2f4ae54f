#include "passes/clip_gradients.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ClipTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor in(int64_t n, const char* name = "x") { return placeholder(g, DType::kFloat, {n}, name); }
};

TEST_F(ClipTest, ByNormOfAZeroTensorIsTheIdentity) {  // case G01
  Tensor x = in(4);
  Output y = dense(clip_by_norm(GradValue(x.output()), 2.0));
  Output d = dense(gradients({reduce_sum(Tensor(y))}, {x})[0]);
  std::vector<Feed> feeds{{x, vec({0, 0, 0, 0})}};
  EXPECT_THAT(run(y, feeds), Each(0.0f));
  EXPECT_THAT(run(d, feeds), Each(1.0f));
}

TEST_F(ClipTest, ByNormScalesToTheLimit) {  // case G01
  Tensor x = in(2);
  Output y = dense(clip_by_norm(GradValue(x.output()), 2.5));
  Output d = dense(gradients({reduce_sum(Tensor(y))}, {x})[0]);
  std::vector<Feed> feeds{{x, vec({3, 4})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(FloatEq(1.5f), FloatEq(2.0f)));
  EXPECT_THAT(run(d, feeds), ElementsAre(FloatNear(0.08f, 1e-6f), FloatNear(-0.06f, 1e-6f)));
  EXPECT_EQ(y.node->name(), "clip_by_norm");
}

TEST_F(ClipTest, ByNormAtTheEdges) {
  Tensor x = in(2), c = placeholder(g, DType::kFloat, {}, "c");
  Output y = dense(clip_by_norm(GradValue(x.output()), c));
  auto at = [&](std::vector<float> v, float limit) {
    return run(y, {{x, vec(std::move(v))}, {c, Array::scalar<float>(limit)}});
  };
  EXPECT_THAT(at({0, 0}, 0), Each(0.0f));            // TensorFlow: 0/0
  EXPECT_THAT(at({3, 4}, kInf), ElementsAre(3, 4));  // TensorFlow: inf/inf
  EXPECT_THAT(at({3, 4}, 0), Each(0.0f));
  for (float v : at({kNan, 4}, 1)) EXPECT_TRUE(std::isnan(v));
}

TEST_F(ClipTest, ByNormOverAxesKeepsRowsApart) {
  Tensor x = placeholder(g, DType::kFloat, {2, 2}, "x");
  std::vector<int32_t> axes{1};
  Output y = dense(clip_by_norm(GradValue(x.output()), 5.0, &axes));
  auto v = run(y, {{x, vec({3, 4, 30, 40}).reshaped({2, 2})}});
  EXPECT_THAT(v, ElementsAre(3, 4, FloatEq(3), FloatEq(4)));
}

TEST_F(ClipTest, ByValueSendsTiesToTheTensorAndLetsLoWin) {
  Tensor x = in(5);
  Output y = dense(clip_by_value(GradValue(x.output()), -1.0, 1.0));
  Output d = dense(gradients({Tensor(y)}, {x})[0]);
  std::vector<Feed> feeds{{x, vec({-2, -1, 0.5f, 1, 2})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(-1, -1, 0.5f, 1, 1));
  EXPECT_THAT(run(d, feeds), ElementsAre(0, 1, 1, 1, 0));
  EXPECT_THAT(
      nodes_under(g, "clip_by_value"),
      ElementsAre("clip_by_value/Minimum/y Const()",
                  "clip_by_value/Minimum Minimum(x, clip_by_value/Minimum/y)", "clip_by_value/y Const()",
                  "clip_by_value Maximum(clip_by_value/Minimum, clip_by_value/y)"));
  Output crossed = dense(clip_by_value(GradValue(x.output()), 3.0, 1.0));
  EXPECT_THAT(run(crossed, feeds), Each(3.0f));
}

TEST_F(ClipTest, ByValueRefusesLimitsThatEnlarge) {
  Tensor x = in(1), lo = placeholder(g, DType::kFloat, {4});
  EXPECT_THAT(error_of([&] { clip_by_value(GradValue(x.output()), lo, lo); }), HasSubstr("enlarge"));
}

TEST_F(ClipTest, GlobalNormMatchesTensorFlow) {
  Tensor a = in(2, "a"), b = in(2, "b");
  auto [clipped, norm] =
      clip_by_global_norm({GradValue(a.output()), GradValue(), GradValue(b.output())}, 5.0);
  std::vector<Feed> feeds{{a, vec({3, 4})}, {b, vec({0, 12})}};
  EXPECT_THAT(run(norm, feeds), ElementsAre(13));
  EXPECT_THAT(run(dense(clipped[0]), feeds), ElementsAre(FloatEq(1.1538462f), FloatEq(1.5384615f)));
  EXPECT_TRUE(clipped[1].none());
  EXPECT_THAT(run(dense(clipped[2]), feeds), ElementsAre(0, FloatEq(4.6153846f)));
  EXPECT_EQ(norm.node->name(), "global_norm/global_norm");
  EXPECT_EQ(clipped[2].dense.node->name(), "clip_by_global_norm/clip_by_global_norm/_2");
}

TEST_F(ClipTest, GlobalNormAtTheEdges) {  // case G03
  Tensor a = in(1, "a"), b = in(1, "b"), c = placeholder(g, DType::kFloat, {}, "c");
  auto [clipped, norm] = clip_by_global_norm({GradValue(a.output()), GradValue(b.output())}, c);
  Tensor both = concat({Tensor(dense(clipped[0])), Tensor(dense(clipped[1]))}, 0);
  auto at = [&](float x, float y, float limit) {
    return run(both, {{a, vec({x})}, {b, vec({y})}, {c, Array::scalar<float>(limit)}});
  };
  EXPECT_THAT(at(0, 0, 0), ElementsAre(0, 0));
  EXPECT_THAT(at(3, 4, kInf), ElementsAre(3, 4));
  EXPECT_THAT(at(0, 0, 1), ElementsAre(0, 0));
  EXPECT_THAT(at(3, 4, 10), ElementsAre(3, 4));
  for (float v : at(kNan, 4, 1)) EXPECT_TRUE(std::isnan(v));
  for (float v : at(kInf, 4, 1)) EXPECT_TRUE(std::isnan(v));
  EXPECT_THAT(run(norm, {{a, vec({3})}, {b, vec({4})}}), ElementsAre(5));
}

TEST_F(ClipTest, GlobalNormOfNothingIsAnError) {
  EXPECT_THAT(error_of([&] { global_norm({GradValue(), GradValue()}); }), HasSubstr("empty list"));
}

TEST_F(ClipTest, AverageNormDividesByTheCount) {
  Tensor x = in(2);
  Output y = clip_by_average_norm(x.output(), 1.25);
  EXPECT_THAT(run(y, {{x, vec({3, 4})}}), ElementsAre(FloatEq(1.5f), FloatEq(2.0f)));  // 5/2 -> 1.25
  EXPECT_THAT(run(y, {{x, vec({0, 0})}}), ElementsAre(0, 0));
}

TEST_F(ClipTest, SlicesAreClippedOnTheirStoredValues) {
  Tensor p = placeholder(g, DType::kFloat, {3, 1}, "p"), i = placeholder(g, DType::kInt32, {2}, "i");
  GradValue d = gradients({reduce_sum(gather(p, i) * 3.0)}, {p})[0];
  ASSERT_TRUE(d.is_slices());
  GradValue c = clip_by_norm(d, 1.0);
  ASSERT_TRUE(c.is_slices());
  EXPECT_EQ(c.slices.indices, d.slices.indices);
  std::vector<int32_t> same{1, 1};
  // sqrt(3² + 3²) is the norm, not 6: duplicates are not merged first.
  auto v = run(c.slices.values, {{p, vec({1, 1, 1}).reshaped({3, 1})},
                                 {i, Array::from<int32_t>({2}, std::span<const int32_t>(same))}});
  EXPECT_THAT(v, Each(FloatNear(std::sqrt(0.5f), 1e-6f)));
}

TEST_F(ClipTest, NormNeitherUnderflowsNorHasNanGradients) {  // case G09
  Tensor x = in(2), y = norm(x);
  Output d = dense(gradients({y}, {x})[0]);
  EXPECT_THAT(run(y, {{x, vec({3, 4})}}), ElementsAre(FloatEq(5)));
  EXPECT_THAT(run(d, {{x, vec({3, 4})}}), ElementsAre(FloatEq(0.6f), FloatEq(0.8f)));
  EXPECT_THAT(run(y, {{x, vec({1e-30f, 0})}}), ElementsAre(FloatEq(1e-30f)));
  EXPECT_THAT(run(d, {{x, vec({1e-30f, 0})}}), ElementsAre(FloatEq(1), 0));
  EXPECT_THAT(run(y, {{x, vec({3e30f, 4e30f})}}), ElementsAre(FloatEq(5e30f)));
  EXPECT_THAT(run(d, {{x, vec({0, 0})}}), ElementsAre(0, 0));
}

}  // namespace
}  // namespace sluice::dsl
