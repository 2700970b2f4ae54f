#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

class OpsTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {2, 3}, "x");
  Tensor u = placeholder(g, DType::kFloat, {}, "u");
};

// Names and helper constants are TensorFlow's.

TEST_F(OpsTest, OperatorsTakeNumbersAsConstantsOfTheOtherType) {
  2.0 * x;
  x / 2;
  x - 1.0;
  -x;
  x % 2.0;
  x > 1.0;
  x <= x;
  EXPECT_THAT(nodes_under(g, "mul"), ElementsAre("mul/x Const()", "mul Mul(mul/x, x)"));
  EXPECT_THAT(nodes_under(g, "truediv"), ElementsAre("truediv/y Const()", "truediv RealDiv(x, truediv/y)"));
  EXPECT_THAT(nodes_under(g, "sub"), ElementsAre("sub/y Const()", "sub Sub(x, sub/y)"));
  EXPECT_THAT(nodes_under(g, "Neg"), ElementsAre("Neg Neg(x)"));
  EXPECT_THAT(nodes_under(g, "mod"), ElementsAre("mod/y Const()", "mod FloorMod(x, mod/y)"));
  EXPECT_THAT(nodes_under(g, "Greater"), ElementsAre("Greater/y Const()", "Greater Greater(x, Greater/y)"));
  EXPECT_THAT(nodes_under(g, "LessEqual"), ElementsAre("LessEqual LessEqual(x, x)"));
}

TEST_F(OpsTest, OperatorsRememberTheAuthorsLine) {
  Tensor y = x + 1.0;
  int line = __LINE__ - 1;
  EXPECT_EQ(y.node().loc().line, line);
  EXPECT_THAT(y.node().loc().str(), HasSubstr("ops_test.cpp"));
  Tensor z = relu(y);
  EXPECT_EQ(z.node().loc().line, __LINE__ - 1);
}

TEST_F(OpsTest, ReductionsMakeTheirAxes) {
  reduce_sum(x);
  reduce_mean(x, 1, {.keepdims = true});
  reduce_max(x, {0, 1});
  EXPECT_THAT(nodes_under(g, "Const"), ElementsAre("Const Const()"));
  EXPECT_THAT(nodes_under(g, "Sum"), ElementsAre("Sum Sum(x, Const)"));
  EXPECT_THAT(nodes_under(g, "Mean"),
              ElementsAre("Mean/reduction_indices Const()", "Mean Mean(x, Mean/reduction_indices)"));
  EXPECT_EQ(g.output("Mean:0").shape(), Shape({2, 1}));
  EXPECT_TRUE(g.node("Mean/reduction_indices").attr<Literal>("value").dims().empty());
  reduce_sum(u);
  EXPECT_THAT(nodes_under(g, "range"), ElementsAre("range/start Const()", "range/delta Const()",
                                                   "range Range(range/start, Rank, range/delta)"));
}

TEST_F(OpsTest, ArrayOpsCarryTensorFlowsNames) {
  reshape(x, std::vector<int64_t>{-1});
  expand_dims(x, 1);
  concat({x, x}, 1);
  split(x, 3, 1);
  split(x, std::vector<int64_t>{1, 2}, 1);
  slice(x, {0, 0}, {1, -1});
  at(x, 0);
  pad(x, {{1, 1}, {0, 0}});
  transpose(x);
  tile(x, {1, 2});
  stack({x, x});
  unstack(x);
  one_hot(placeholder(g, DType::kInt32, {2}, "i"), 5);
  zeros(g, {2, 3});
  ones(g, {2000});
  std::vector<std::string> names;
  for (Node* n : g.nodes()) names.push_back(n->name());
  for (const char* want : {"Reshape/shape",
                           "ExpandDims/dim",
                           "concat/axis",
                           "concat",
                           "split/split_dim",
                           "split",
                           "Const",
                           "split_1/split_dim",
                           "split_1",
                           "Slice/begin",
                           "Slice/size",
                           "strided_slice/stack",
                           "strided_slice/stack_1",
                           "strided_slice/stack_2",
                           "strided_slice",
                           "Pad/paddings",
                           "transpose/perm",
                           "transpose",
                           "Tile/multiples",
                           "stack",
                           "unstack",
                           "one_hot/on_value",
                           "one_hot/off_value",
                           "one_hot/depth",
                           "one_hot",
                           "zeros",
                           "ones/shape_as_tensor",
                           "ones/Const",
                           "ones"}) {
    EXPECT_THAT(names, ::testing::Contains(want));
  }
  EXPECT_EQ(g.node("zeros").op(), "Const");
  EXPECT_EQ(g.node("ones").op(), "Fill");
}

TEST_F(OpsTest, MatmulPicksTheBatchedOpByRank) {
  EXPECT_EQ(matmul(x, x, {.transpose_b = true}).node().op(), "MatMul");
  Tensor b = zeros(g, {2, 2, 2});
  EXPECT_EQ(matmul(b, b).node().op(), "BatchMatMulV2");
}

TEST_F(OpsTest, NamesAndScopesNest) {
  NameScope outer(g, "outer");
  Tensor y = relu(x, "mine");
  EXPECT_EQ(y.node().name(), "outer/mine");
  EXPECT_EQ(relu(x, "mine").node().name(), "outer/mine_1");
}

TEST_F(OpsTest, ShapeOfAKnownTensorIsAConstant) {
  EXPECT_EQ(shape(x).node().op(), "Const");
  EXPECT_EQ(shape(u).node().op(), "Shape");
}

TEST_F(OpsTest, MismatchedTypesNameTheLine) {
  Tensor i = placeholder(g, DType::kInt32, {2, 3}, "i");
  EXPECT_THAT(error_of([&] { x + i; }), HasSubstr("ops_test.cpp"));
  EXPECT_THAT(error_of([&] { add(1.0, 2.0); }), HasSubstr("at least one operand"));
}

TEST_F(OpsTest, DropoutRefusesARateOfOne) {  // case G31
  EXPECT_THAT(error_of([&] { dropout(x, 1.0); }), HasSubstr("[0, 1)"));
  EXPECT_EQ(dropout(x, 0.0), x);
}

TEST_F(OpsTest, DropoutScalesWhatItKeepsAndMasksTheGradientAlike) {  // case G31
  Tensor v = placeholder(g, DType::kFloat, {10000}, "v");
  Tensor y = dropout(v, 0.75, {.seed = 7});
  Output d = dense(gradients({y}, {v})[0]);
  Session s(g);
  auto out = s.run({y, d}, {{v, vec(std::vector<float>(10000, 1.0f))}});
  double sum = 0;
  for (float f : floats(out[0])) {
    EXPECT_TRUE(f == 0.0f || f == 4.0f) << f;
    sum += f;
  }
  EXPECT_NEAR(sum / 10000, 1.0, 0.07);
  EXPECT_EQ(floats(out[0]), floats(out[1]));
}

TEST_F(OpsTest, PowersAtBaseZero) {  // cases G07, G08
  Tensor a = placeholder(g, DType::kFloat, {2}, "a"), b = placeholder(g, DType::kFloat, {2}, "b");
  auto d = gradients({reduce_sum(pow(a, b))}, {a, b});
  std::vector<Feed> feeds{{a, vec({0, 3})}, {b, vec({1, 2})}};
  EXPECT_THAT(run(dense(d[0]), feeds), ElementsAre(FloatEq(1), FloatEq(6)));
  EXPECT_THAT(run(dense(d[1]), feeds), ElementsAre(FloatEq(0), FloatEq(9.887511f)));

  Tensor t = placeholder(g, DType::kFloat, {}, "t");
  auto e = [&](double v) { return constant(g, v); };
  Tensor p = 3.0 * pow(t, e(0)) + 2.0 * pow(t, e(1)) + pow(t, e(2));
  Output dp = dense(gradients({p}, {t})[0]);
  EXPECT_THAT(run(p, {{t, Array::scalar<float>(0)}}), ElementsAre(3));
  EXPECT_THAT(run(dp, {{t, Array::scalar<float>(0)}}), ElementsAre(2));
}

TEST_F(OpsTest, WhereGradientsWithAGuardedBranch) {  // case G04
  Tensor a = placeholder(g, DType::kFloat, {1}, "a");
  Tensor neg = a < 0.0, one = ones_like(a);
  Tensor safe_log = log(where(neg, one, a)), safe_inv = 1.0 / (2.0 - where(neg, a, one));
  Output d = dense(gradients({where(neg, safe_inv, safe_log)}, {a})[0]);
  EXPECT_THAT(run(d, {{a, vec({2})}}), ElementsAre(FloatEq(0.5f)));
  EXPECT_THAT(run(d, {{a, vec({-2})}}), ElementsAre(FloatEq(0.0625f)));
}

TEST_F(OpsTest, SummariesTagWithTheirScope) {
  NameScope scope(g, "train");
  Tensor s = summary::scalar("loss a", constant(g, 1.0));
  EXPECT_EQ(s.node().name(), "train/loss_a");
  EXPECT_EQ(g.node("train/loss_a/tags").attr<Literal>("value").as_strings()[0], "train/loss_a");
  summary::histogram("h", x);
  EXPECT_EQ(summary::merge_all(g).node().num_inputs(), 2);
  EXPECT_FALSE(static_cast<bool>(summary::merge_all(g, "none")));
}

}  // namespace
}  // namespace sluice::dsl
