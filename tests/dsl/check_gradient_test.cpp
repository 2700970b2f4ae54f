#include "dsl/check_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/infer.h"
#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::HasSubstr;

TEST(CheckGradient, AcceptsRightGradientsTightly) {
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {2, 3}, "x");
  Tensor y = sigmoid(matmul(x, constant(g, std::vector<float>{1, -2, 0.5f, 1, 2, 3}, {3, 2})));
  GradientCheck c = check_gradient(y, x, vec({0.1f, 0.2f, -0.3f, 0.4f, 0.5f, 0.6f}).reshaped({2, 3}));
  EXPECT_EQ(c.analytic.size(), 6u);
  EXPECT_LT(c.max_error, 1e-6) << c.str();
  EXPECT_NE(c.analytic[0], 0.0);  // zeros would agree with zeros
}

TEST(CheckGradient, FindsAPlantedError) {
  OpRegistry ops = standard_ops();
  ops.add_gradient("BadTanh", [](graph::Grad& g) {
    // 1 + y² where 1 - y² is right.
    return graph::Gradients{
        g.op("Mul", {g.dy(), g.op("AddV2", {g.op("Square", {g.y()}), g.scalar_like(g.y(), 1.0)})})};
  });
  Graph g(ops);
  Tensor x = placeholder(g, DType::kFloat, {2}, "x");
  Tensor y = g.add({.op = "Tanh", .inputs = {x}, .attrs = {{"_gradient_op_type", "BadTanh"}}});
  GradientCheck c = check_gradient(y, x, vec({0.5f, 1.0f}));
  EXPECT_GT(c.max_error, 0.1) << c.str();
}

TEST(CheckGradient, WorksInDoubleAndThroughVariables) {
  Graph g;
  Tensor x = placeholder(g, DType::kDouble, {2}, "x");
  Variable w = get_variable(g, "w", {2}, {.dtype = DType::kDouble, .initializer = constant_initializer(3.0)});
  GradientCheck c = check_gradient(exp(multiply(x, w)), x, Array::from<double>({2}, {0.5, -0.25}),
                                   {.init = {&w.initializer()}});
  EXPECT_LT(c.max_error, 1e-8) << c.str();
}

TEST(CheckGradient, SaysWhenThereIsNoGradient) {
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {2}, "x");
  EXPECT_THAT(error_of([&] { check_gradient(stop_gradient(x), x, vec({1, 2})); }), HasSubstr("no gradient"));
}

}  // namespace
}  // namespace sluice::dsl
