// Variables and the optimizers' updates, each against numbers worked out by hand or in double.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/direct_run.h"

namespace sluice::optest {
namespace {

using runtime::Variable;
using testing::HasSubstr;

std::shared_ptr<Variable> variable(const std::string& name, Array value) {
  auto v = std::make_shared<Variable>(name, value.dtype());
  v->assign(value);
  return v;
}
std::shared_ptr<Variable> scalar_variable(const std::string& name, double value) {
  return variable(name, Array::from<double>({1}, {value}));
}
double value_of(const std::shared_ptr<Variable>& v) { return v->value().as<double>()[0]; }
Array num(double v) { return Array::scalar<double>(v); }
Array vec(double v) { return Array::from<double>({1}, {v}); }

std::string error_of(Call call, Code code) {
  try {
    run_op(std::move(call));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Variables, AssignReadAndUpdate) {
  auto v = std::make_shared<Variable>("v", DType::kFloat);
  EXPECT_FALSE(run_op({.op = "VarIsInitializedOp", .inputs = {v}})[0].item<bool>());
  EXPECT_THAT(
      error_of({.op = "ReadVariableOp", .inputs = {v}, .attrs = {{"dtype", DType::kFloat}}},
               Code::kFailedPrecondition),
      HasSubstr("Error while reading resource variable v from Container: localhost. This could mean that the "
                "variable was uninitialized."));
  run_op({.op = "AssignVariableOp", .inputs = {v, Array::from<float>({2}, {1, 2})}});
  run_op({.op = "AssignAddVariableOp", .inputs = {v, Array::from<float>({2}, {10, 20})}});
  run_op({.op = "AssignSubVariableOp", .inputs = {v, Array::from<float>({2}, {1, 1})}});
  const Array out = run_op({.op = "ReadVariableOp", .inputs = {v}, .attrs = {{"dtype", DType::kFloat}}})[0];
  EXPECT_EQ(out.as<float>()[0], 10);
  EXPECT_EQ(out.as<float>()[1], 21);
  EXPECT_THAT(error_of({.op = "AssignAddVariableOp", .inputs = {v, Array::from<float>({3}, {1, 1, 1})}},
                       Code::kInvalidArgument),
              HasSubstr("shape"));
}

TEST(Variables, ReadersKeepTheValueTheyHold) {
  auto v = variable("v", Array::from<float>({2}, {1, 2}));
  const auto held = v->read();
  run_op({.op = "AssignAddVariableOp", .inputs = {v, Array::from<float>({2}, {1, 1})}});
  EXPECT_EQ(static_cast<const float*>(held->buffer.data())[0], 1);
  EXPECT_EQ(v->value().as<float>()[0], 2);
}

TEST(Variables, UpdatesWorkInAnyLayout) {
  auto v = std::make_shared<Variable>("v", DType::kFloat);
  const Array value = Array::from<float>({1, 2, 1, 2}, {1, 2, 3, 4});
  v->assign(value, runtime::Layout::channels_last(4));
  run_op({.op = "AssignAddVariableOp", .inputs = {v, Array::from<float>({1, 2, 1, 2}, {10, 20, 30, 40})}});
  EXPECT_EQ(v->spec()->layout, runtime::Layout::channels_last(4));
  EXPECT_THAT(v->value().as<float>(), testing::ElementsAre(11, 22, 33, 44));
  run_op({.op = "ResourceApplyGradientDescent", .inputs = {v, Array::scalar(1.0f), value}});
  EXPECT_THAT(v->value().as<float>(), testing::ElementsAre(10, 20, 30, 40));
}

TEST(Variables, ScatterAddsDuplicatesAndChecksBounds) {
  auto v = variable("v", Array::from<float>({3, 2}, {0, 0, 0, 0, 0, 0}));
  run_op({.op = "ResourceScatterAdd",
          .inputs = {v, Array::from<int32_t>({3}, {2, 0, 2}), Array::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
          .attrs = {{"dtype", DType::kFloat}}});
  EXPECT_THAT(v->value().as<float>(), testing::ElementsAre(3, 4, 0, 0, 6, 8));
  EXPECT_THAT(error_of({.op = "ResourceScatterAdd",
                        .inputs = {v, Array::from<int32_t>({1}, {3}), Array::from<float>({1, 2}, {1, 2})},
                        .attrs = {{"dtype", DType::kFloat}}},
                       Code::kInvalidArgument),
              HasSubstr("indices[0] = 3 is not in [0, 3)"));
}

TEST(Variables, CountUpToStopsAtItsLimit) {
  auto v = variable("v", Array::scalar<int32_t>(1));
  EXPECT_EQ(run_op({.op = "CountUpTo", .inputs = {v}, .attrs = {{"limit", 2}}})[0].item<int32_t>(), 1);
  EXPECT_THAT(error_of({.op = "CountUpTo", .inputs = {v}, .attrs = {{"limit", 2}}}, Code::kOutOfRange),
              HasSubstr("Reached limit of 2"));
}

TEST(Variables, AssignChecksTheShape) {
  auto v = variable("v", Array::from<float>({2}, {1, 2}));
  EXPECT_ANY_THROW(run_op({.op = "Assign", .inputs = {v, Array::from<float>({3}, {1, 2, 3})}}));
  run_op({.op = "Assign", .inputs = {v, Array::from<float>({2}, {5, 6})}});
  EXPECT_EQ(v->value().as<float>()[1], 6);
}

// graph-and-training §4.3: w = 1, gradients 0.1, -0.2, 0.3, in double.
const double kGradients[] = {0.1, -0.2, 0.3};

TEST(Optimizers, GradientDescent) {
  auto w = scalar_variable("w", 1);
  for (double g : kGradients) run_op({.op = "ResourceApplyGradientDescent", .inputs = {w, num(.1), vec(g)}});
  EXPECT_NEAR(value_of(w), 0.98, 1e-15);
}

TEST(Optimizers, Momentum) {
  for (bool nesterov : {false, true}) {
    auto w = scalar_variable("w", 1), a = scalar_variable("a", 0);
    for (double g : kGradients)
      run_op({.op = "ResourceApplyMomentum",
              .inputs = {w, a, num(.1), vec(g), num(.9)},
              .attrs = {{"use_nesterov", nesterov}}});
    EXPECT_NEAR(value_of(w), nesterov ? 0.96281 : 0.9809, 1e-15);
    EXPECT_NEAR(value_of(a), 0.201, 1e-15);
  }
}

TEST(Optimizers, Adam) {
  auto w = scalar_variable("w", 1), m = scalar_variable("m", 0), v = scalar_variable("v", 0);
  double p1 = .9, p2 = .999;
  for (double g : kGradients) {
    run_op({.op = "ResourceApplyAdam",
            .inputs = {w, m, v, num(p1), num(p2), num(.001), num(.9), num(.999), num(1e-8), vec(g)}});
    p1 *= .9;
    p2 *= .999;
  }
  EXPECT_NEAR(value_of(w), 0.9990228653813656, 1e-15);
  EXPECT_NEAR(value_of(m), .0201, 1e-15);
  EXPECT_NEAR(value_of(v), 1.3994001e-4, 1e-16);
}

TEST(Optimizers, RmsProp) {
  auto w = scalar_variable("w", 1), ms = scalar_variable("ms", 1), mom = scalar_variable("mom", 0);
  for (double g : kGradients)
    run_op({.op = "ResourceApplyRMSProp",
            .inputs = {w, ms, mom, num(.01), num(.9), num(.9), num(1e-10), vec(g)}});
  EXPECT_NEAR(value_of(w), 0.9978727396672898, 1e-15);
  EXPECT_NEAR(value_of(ms), .74241, 1e-15);
  EXPECT_NEAR(value_of(mom), .00234112723694894, 1e-15);
}

TEST(Optimizers, CenteredRmsProp) {
  auto w = scalar_variable("w", 1), mg = scalar_variable("mg", 0), ms = scalar_variable("ms", 1),
       mom = scalar_variable("mom", 0);
  for (double g : kGradients)
    run_op({.op = "ResourceApplyCenteredRMSProp",
            .inputs = {w, mg, ms, mom, num(.01), num(.9), num(.9), num(1e-10), vec(g)}});
  EXPECT_NEAR(value_of(w), 0.9978719460243892, 1e-15);
}

TEST(Optimizers, Adagrad) {
  auto w = scalar_variable("w", 1), a = scalar_variable("a", .1);
  for (double g : kGradients) run_op({.op = "ResourceApplyAdagrad", .inputs = {w, a, num(.1), vec(g)}});
  EXPECT_NEAR(value_of(w), 0.9602513999220764, 1e-15);
  EXPECT_NEAR(value_of(a), .24, 1e-15);
}

TEST(Optimizers, Adadelta) {
  auto w = scalar_variable("w", 1), a = scalar_variable("a", 0), u = scalar_variable("u", 0);
  for (double g : kGradients)
    run_op({.op = "ResourceApplyAdadelta", .inputs = {w, a, u, num(1), num(.95), num(1e-8), vec(g)}});
  EXPECT_NEAR(value_of(w), 0.9994368843044593, 1e-15);
}

TEST(Optimizers, Ftrl) {
  auto w = scalar_variable("w", 1), n = scalar_variable("n", .1), z = scalar_variable("z", 0);
  for (double g : kGradients)
    run_op({.op = "ResourceApplyFtrl", .inputs = {w, n, z, vec(g), num(.1), num(.01), num(.02), num(-.5)}});
  EXPECT_NEAR(value_of(w), 0.0035824258414878, 1e-13);
  EXPECT_NEAR(value_of(z), -0.0276935277397210, 1e-13);
  EXPECT_NEAR(value_of(n), .24, 1e-15);
}

TEST(Optimizers, SparseTouchesOnlyItsRows) {
  auto w = variable("w", Array::from<float>({3, 1}, {1, 1, 1})),
       a = variable("a", Array::from<float>({3, 1}, {1, 1, 1}));
  run_op({.op = "ResourceSparseApplyMomentum",
          .inputs = {w, a, Array::scalar(.5f), Array::from<float>({1, 1}, {2}),
                     Array::from<int32_t>({1}, {1}), Array::scalar(.5f)}});
  EXPECT_THAT(w->value().as<float>(), testing::ElementsAre(1, 1 - .5f * 2.5f, 1));
  EXPECT_THAT(a->value().as<float>(), testing::ElementsAre(1, 2.5f, 1));
}

TEST(Optimizers, ShapesMustAgree) {
  auto w = variable("w", Array::from<float>({2}, {1, 1}));
  EXPECT_ANY_THROW(run_op({.op = "ResourceApplyGradientDescent",
                           .inputs = {w, Array::scalar(1.0f), Array::from<float>({3}, {1, 2, 3})}}));
  EXPECT_THAT(w->value().as<float>(), testing::ElementsAre(1, 1));
}

// cases.md G32 (a).
TEST(Optimizers, AdamFirstStepInFloat) {
  auto one = [](const char* n) { return variable(n, Array::from<float>({1}, {0})); };
  auto w = one("w"), m = one("m"), v = one("v");
  auto s = [](float x) { return Operand(Array::scalar(x)); };
  run_op({.op = "ResourceApplyAdam",
          .inputs = {w, m, v, s(.9f), s(.999f), s(.001f), s(.9f), s(.999f), s(1e-8f),
                     Array::from<float>({1}, {.1f})}});
  EXPECT_NEAR(w->value().as<float>()[0], -0.00099999684, 2e-9);
}

}  // namespace
}  // namespace sluice::optest
