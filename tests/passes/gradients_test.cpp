#include "passes/gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::IsEmpty;

class GradientsTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor in(const char* name, Shape shape = {2, 3}, DType t = DType::kFloat) {
    return placeholder(g, t, std::move(shape), name);
  }
};

// The names and wiring below are what TensorFlow builds for the same program.

TEST_F(GradientsTest, AddsOnesForMissingGradYs) {
  Tensor x = in("x"), u = in("u", {-1, 3});
  gradients({tanh(x)}, {x});
  EXPECT_THAT(nodes_under(g, "gradients/"),
              ElementsAre("gradients/Shape Const()", "gradients/grad_ys_0/Const Const()",
                          "gradients/grad_ys_0 Fill(gradients/Shape, gradients/grad_ys_0/Const)",
                          "gradients/Tanh_grad/TanhGrad TanhGrad(Tanh, gradients/grad_ys_0)"));
  gradients({tanh(u)}, {u});
  EXPECT_EQ(nodes_under(g, "gradients_1/")[0], "gradients_1/Shape Shape(Tanh_1)");
}

TEST_F(GradientsTest, GivenGradYsPassThroughIdentity) {
  Tensor x = in("x");
  GradientOptions o;
  o.grad_ys = {GradValue(in("dy").output())};
  gradients({tanh(x)}, {x}, o);
  EXPECT_EQ(nodes_under(g, "gradients/")[0], "gradients/grad_ys_0 Identity(dy)");
}

TEST_F(GradientsTest, SumsContributionsInOneAddNBesideTheFirst) {
  Tensor x = in("x"), y = identity(x);
  Tensor z = y + tanh(y) + sigmoid(y);
  GradValue d = gradients({z}, {x})[0];
  Node& add = *d.dense.node;
  EXPECT_EQ(add.name(), "gradients/AddN");
  EXPECT_EQ(add.num_inputs(), 3);
  EXPECT_THAT(add.attr<std::vector<std::string>>("_class"), ElementsAre("loc:@gradients/grad_ys_0"));
}

TEST_F(GradientsTest, TreeAggregationFoldsUnderTheOpsName) {
  Tensor x = in("x"), y = identity(x);
  Tensor z = y + tanh(y) + sigmoid(y);
  GradientOptions o;
  o.aggregation_method = AggregationMethod::kExperimentalTree;
  gradients({z}, {x}, o);
  EXPECT_THAT(
      nodes_under(g, "gradients/Identity_gradient_sum/"),
      ElementsAre(::testing::StartsWith("gradients/Identity_gradient_sum/AddN AddN(gradients/grad_ys_0"),
                  ::testing::StartsWith(
                      "gradients/Identity_gradient_sum/AddN_1 AddN(gradients/Identity_gradient_sum/AddN")));
}

TEST_F(GradientsTest, GatesAllInputGradientsOfAnOp) {
  Tensor a = in("a", {2, 3}), b = in("b", {3, 2});
  GradientOptions o;
  o.gate_gradients = true;
  auto d = gradients({matmul(a, b)}, {a, b}, o);
  EXPECT_THAT(
      nodes_under(g, "gradients/MatMul_grad/tuple/"),
      ElementsAre("gradients/MatMul_grad/tuple/group_deps NoOp(^gradients/MatMul_grad/MatMul, "
                  "^gradients/MatMul_grad/MatMul_1)",
                  "gradients/MatMul_grad/tuple/control_dependency Identity(gradients/MatMul_grad/MatMul, "
                  "^gradients/MatMul_grad/tuple/group_deps)",
                  "gradients/MatMul_grad/tuple/control_dependency_1 Identity(gradients/MatMul_grad/MatMul_1, "
                  "^gradients/MatMul_grad/tuple/group_deps)"));
  EXPECT_EQ(d[1].dense.name(), "gradients/MatMul_grad/tuple/control_dependency_1:0");
}

TEST_F(GradientsTest, ColocatesWithTheForwardOpWhenAsked) {
  Tensor a = in("a", {2, 3}), b = in("b", {3, 2});
  GradientOptions o;
  o.colocate_gradients_with_ops = true;
  auto d = gradients({matmul(a, b)}, {a}, o);
  EXPECT_THAT(d[0].dense.node->attr<std::vector<std::string>>("_class"), ElementsAre("loc:@MatMul"));
}

TEST_F(GradientsTest, ScopesOfSeveralCallsAreDistinct) {
  Tensor x = in("x");
  Tensor y = tanh(x);
  GradientOptions o;
  o.name = "mine";
  EXPECT_EQ(gradients({y}, {x})[0].dense.node->name(), "gradients/Tanh_grad/TanhGrad");
  EXPECT_EQ(gradients({y}, {x})[0].dense.node->name(), "gradients_1/Tanh_grad/TanhGrad");
  EXPECT_EQ(gradients({y}, {x}, o)[0].dense.node->name(), "mine/Tanh_grad/TanhGrad");
}

TEST_F(GradientsTest, StopGradientsCutThePath) {
  Tensor x = in("x"), y = tanh(x);
  GradientOptions o;
  o.stop_gradients = {y};
  auto d = gradients({sigmoid(y)}, {x, y}, o);
  EXPECT_TRUE(d[0].none());
  EXPECT_FALSE(d[1].none());
  EXPECT_TRUE(gradients({sigmoid(stop_gradient(y))}, {x})[0].none());
}

TEST_F(GradientsTest, UnconnectedIsNoneOrZerosOnRequest) {
  Tensor x = in("x", {2}), u = in("u", {2});
  EXPECT_TRUE(gradients({tanh(x)}, {u})[0].none());
  GradientOptions o;
  o.unconnected_gradients = UnconnectedGradients::kZero;
  Output z = dense(gradients({tanh(x)}, {u}, o)[0]);
  EXPECT_THAT(run(z, {{u, vec({1, 2})}}), ElementsAre(0, 0));
}

TEST_F(GradientsTest, IntegerTensorsActAsConstants) {
  Tensor x = in("x", {2, 3});
  Tensor y = cast(cast(x, DType::kInt32), DType::kFloat);
  EXPECT_TRUE(gradients({y}, {x})[0].none());
}

TEST_F(GradientsTest, AnXThatIsAlsoAYGetsOnes) {
  Tensor x = in("x", {2});
  Output d = dense(gradients({x}, {x})[0]);
  EXPECT_THAT(run(d, {{x, vec({5, 6})}}), ElementsAre(1, 1));
}

TEST_F(GradientsTest, AnIntermediateXStillPassesItsGradientOn) {
  Tensor x = in("x", {1}), y = x * 3.0, z = y * y;
  auto d = gradients({z}, {x, y});
  EXPECT_THAT(run(dense(d[1]), {{x, vec({2})}}), ElementsAre(12));
  EXPECT_THAT(run(dense(d[0]), {{x, vec({2})}}), ElementsAre(36));
}

TEST_F(GradientsTest, SparseGradientsConcatenateAndUnifyIndices) {
  Tensor p = in("p", {5, 3}), i = in("i", {2}, DType::kInt32), j = in("j", {2}, DType::kInt64);
  Tensor y = reduce_sum(gather(p, i)) + reduce_sum(gather(p, j));
  GradValue d = gradients({y}, {p})[0];
  ASSERT_TRUE(d.is_slices());
  EXPECT_EQ(d.slices.values.node->name(), "gradients/concat");
  EXPECT_EQ(d.slices.indices.node->name(), "gradients/concat_1");
  EXPECT_EQ(d.slices.indices.dtype(), DType::kInt64);
  EXPECT_EQ(nodes_under(g, "gradients/Cast").size(), 1u);
}

TEST_F(GradientsTest, SlicesAndDenseAreAddedDense) {
  Tensor p = in("p", {3, 1}), i = in("i", {2}, DType::kInt32);
  Tensor y = reduce_sum(gather(p, i)) + reduce_sum(p);
  Output d = dense(gradients({y}, {p})[0]);
  EXPECT_EQ(d.node->name(), "gradients/AddN");
  EXPECT_EQ(d.node->input(1).node->name(), "gradients/AddN/inputs_1");
  std::vector<float> rows{1, 2, 3};
  std::vector<int32_t> at{2, 2};
  auto v = run(d, {{p, Array::from<float>({3, 1}, std::span<const float>(rows))},
                   {i, Array::from<int32_t>({2}, std::span<const int32_t>(at))}});
  EXPECT_THAT(v, ElementsAre(1, 1, 3));
}

TEST_F(GradientsTest, UnusedOutputsOfAnOpGetZeros) {
  Tensor x = in("x", {4});
  std::vector<Tensor> parts = split(x, 2);
  Output d = dense(gradients({reduce_sum(square(parts[1]))}, {x})[0]);
  EXPECT_EQ(nodes_under(g, "gradients/zeros_like").size(), 1u);
  EXPECT_THAT(run(d, {{x, vec({1, 2, 3, 4})}}), ElementsAre(0, 0, 6, 8));
}

TEST_F(GradientsTest, BroadcastOperandsAreSummedBack) {  // case G25
  Tensor a = in("a", {2, 1, 3}), b = in("b", {4, 1}), c = in("c", Shape::scalar());
  auto d = gradients({reduce_sum(a * b + c)}, {a, b, c});
  std::vector<float> ones(6, 1);
  std::vector<Feed> feeds{{a, Array::from<float>({2, 1, 3}, std::span<const float>(ones))},
                          {b, vec({1, 2, 3, 4}).reshaped({4, 1})},
                          {c, Array::scalar<float>(0)}};
  EXPECT_THAT(run(dense(d[0]), feeds), ::testing::Each(10));
  EXPECT_THAT(run(dense(d[1]), feeds), ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(run(dense(d[2]), feeds), ElementsAre(24));
  EXPECT_EQ(d[0].dense.shape(), Shape({2, 1, 3}));
  EXPECT_EQ(d[1].dense.shape(), Shape({4, 1}));
  EXPECT_EQ(d[2].dense.shape(), Shape::scalar());
}

TEST_F(GradientsTest, AFedIntermediateValueIsTheOneDifferentiatedAt) {  // case G27
  Tensor a = in("a", {}), b = a + 1.0, y = b * b;
  Output d = dense(gradients({y}, {a})[0]);
  EXPECT_THAT(run(d, {{a, Array::scalar<float>(0)}}), ElementsAre(2));
  EXPECT_THAT(run(d, {{a, Array::scalar<float>(0)}, {b, Array::scalar<float>(5)}}), ElementsAre(10));
}

TEST_F(GradientsTest, FiftyThousandDeepIsNoProblem) {  // case G30
  Tensor x = in("x", {});
  Tensor one = constant(g, 1.0);
  Tensor y = x;
  for (int i = 0; i < 50000; ++i) y = add(y, one);
  Output d = dense(gradients({y}, {x})[0]);
  Session s(g);
  auto out = s.run({y, d}, {{x, Array::scalar<float>(0)}});
  EXPECT_EQ(floats(out[0])[0], 50000.0f);
  EXPECT_EQ(floats(out[1])[0], 1.0f);
}

TEST_F(GradientsTest, SeveralYsAddUp) {
  Tensor x = in("x", {2});
  Output d = dense(gradients({x * 2.0, reduce_sum(x)}, {x})[0]);
  EXPECT_THAT(run(d, {{x, vec({1, 1})}}), ElementsAre(3, 3));
}

TEST_F(GradientsTest, SecondDerivative) {
  Tensor x = in("x", {1});
  Output d = dense(gradients({x * x * x}, {x})[0]);
  Output d2 = dense(gradients({d}, {x})[0]);
  EXPECT_THAT(run(d2, {{x, vec({2})}}), ElementsAre(FloatEq(12)));
}

}  // namespace
}  // namespace sluice::dsl
