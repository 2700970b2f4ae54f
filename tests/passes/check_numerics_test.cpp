#include "passes/check_numerics.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class CheckNumerics : public ::testing::Test {
 protected:
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {2}, "x");
};

TEST_F(CheckNumerics, StopsTheRunWithTensorFlowsText) {
  Output y = passes::check_numerics(x, "message");
  EXPECT_THAT(run(y, {{x, vec({1, 2})}}), ElementsAre(1, 2));
  EXPECT_THAT(error_of([&] { run(y, {{x, vec({1, kNan})}}); }), HasSubstr("message : Tensor had NaN values"));
  EXPECT_THAT(error_of([&] {
                run(y, {{x, vec({-kInf, 1})}});
              }),
              HasSubstr("message : Tensor had Inf values"));
  EXPECT_THAT(error_of([&] {
                run(y, {{x, vec({kInf, kNan})}});
              }),
              HasSubstr("message : Tensor had Inf and NaN values"));
}

TEST_F(CheckNumerics, IntegersAreATypeError) {
  Tensor i = placeholder(g, DType::kInt32, {2}, "i");
  EXPECT_THAT(error_of([&] { passes::check_numerics(i, "m"); }), HasSubstr("int32"));
}

TEST_F(CheckNumerics, VerifyStandsBesideItsTensor) {
  passes::verify_tensor_all_finite(x, "msg");
  EXPECT_THAT(nodes_under(g, "VerifyFinite/"),
              ElementsAre("VerifyFinite/CheckNumerics CheckNumerics(x)",
                          "VerifyFinite/control_dependency Identity(x, ^VerifyFinite/CheckNumerics)"));
}

TEST_F(CheckNumerics, AddOpsChainsInCreationOrderAndSkipsIntegers) {
  Tensor y = relu(x);
  cast(y, DType::kInt32);
  add_check_numerics_ops(g);
  EXPECT_THAT(
      nodes_under(g, "CheckNumerics"),
      ElementsAre("CheckNumerics CheckNumerics(x)", "CheckNumerics_1 CheckNumerics(Relu, ^CheckNumerics)"));
  EXPECT_THAT(nodes_under(g, "group_deps"), ElementsAre("group_deps NoOp(^CheckNumerics_1)"));
  EXPECT_EQ(g.node("CheckNumerics_1").attr<std::string>("message"), "Relu:0");
}

TEST_F(CheckNumerics, TheFirstOffenderIsTheOneReported) {
  Tensor y = log(x), z = square(y);
  (void)z;
  Node& all = add_check_numerics_ops(g);
  Session s(g);
  s.run({}, {{x, vec({1, 2})}}, {&all});
  EXPECT_THAT(error_of([&] {
                s.run({}, {{x, vec({-1, 2})}}, {&all});
              }),
              AllOf(HasSubstr("Log:0"), HasSubstr("NaN")));
}

TEST_F(CheckNumerics, MaskedValuesOfAConstantPowerStaySilent) {  // case N01
  Tensor y = reduce_sum(pow(x, 2.0));
  Output d = dense(gradients({y}, {x})[0]);
  Node& all = add_check_numerics_ops(g);
  Session s(g);
  auto out = s.run({y, d}, {{x, vec({-2, 3})}}, {&all});
  EXPECT_EQ(floats(out[0])[0], 13.0f);
  EXPECT_THAT(floats(out[1]), ElementsAre(-4, 6));
  for (Node* n : g.nodes()) EXPECT_NE(n->op(), "Log") << n->name();
}

TEST_F(CheckNumerics, AGradientIsCheckedToo) {
  Tensor y = sqrt(check_numerics(x, "m"));
  Output d = dense(gradients({y}, {x})[0]);
  EXPECT_THAT(error_of([&] {
                run(d, {{x, vec({0, 1})}});
              }),
              HasSubstr("Not a number (NaN) or infinity (Inf) values detected in gradient."));
}

}  // namespace
}  // namespace sluice::dsl
