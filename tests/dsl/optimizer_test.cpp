#include "dsl/train/optimizer.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One weight, gradients fed step by step: the vectors of graph-and-training §4.3.
struct Trajectory {
  Graph g;
  Variable w;
  Tensor grad;
  explicit Trajectory(double start = 1.0, bool resource = true) {
    w = get_variable(
        g, "w", {1},
        {.dtype = DType::kDouble, .initializer = constant_initializer(start), .use_resource = resource});
    grad = placeholder(g, DType::kDouble, {1}, "grad");
  }
  // w after the gradients, and the slots named.
  std::vector<double> run(Optimizer& opt, const std::vector<double>& grads,
                          const std::vector<std::string>& slots = {}) {
    Node& step = opt.apply_gradients({{GradValue(grad.output()), w}});
    Session s(g);
    s.run({}, {}, {&global_variables_initializer(g)});
    for (double d : grads) s.run({}, {{grad, Array::from<double>({1}, {d})}}, {&step});
    std::vector<Output> fetch{w.snapshot()};
    for (const std::string& name : slots) fetch.push_back(opt.get_slot(w, name).snapshot());
    std::vector<double> out;
    for (Array& a : s.run(fetch)) out.push_back(a.as<double>()[0]);
    return out;
  }
};

const std::vector<double> kGrads{0.1, -0.2, 0.3};

TEST(OptimizerVectors, GradientDescent) {
  Trajectory t;
  GradientDescentOptimizer opt(0.1);
  EXPECT_NEAR(t.run(opt, kGrads)[0], 1 - 0.1 * 0.2, 1e-12);
}

TEST(OptimizerVectors, Momentum) {
  Trajectory t;
  MomentumOptimizer opt(0.1, 0.9);
  auto v = t.run(opt, kGrads, {"momentum"});
  EXPECT_NEAR(v[0], 0.9809, 1e-9);
  EXPECT_NEAR(v[1], 0.201, 1e-9);
}

TEST(OptimizerVectors, Nesterov) {
  Trajectory t;
  MomentumOptimizer opt(0.1, 0.9, {.use_nesterov = true});
  EXPECT_NEAR(t.run(opt, kGrads)[0], 0.96281, 1e-9);
}

TEST(OptimizerVectors, Adam) {
  Trajectory t;
  AdamOptimizer opt;
  auto v = t.run(opt, kGrads, {"m", "v"});
  EXPECT_NEAR(v[0], 0.9990228653813656, 1e-12);
  EXPECT_NEAR(v[1], 0.0201, 1e-12);
  EXPECT_NEAR(v[2], 1.3994001e-4, 1e-12);
}

TEST(OptimizerVectors, RMSProp) {
  Trajectory t;
  RMSPropOptimizer opt(0.01, {.decay = 0.9, .momentum = 0.9});
  auto v = t.run(opt, kGrads, {"rms", "momentum"});
  EXPECT_NEAR(v[0], 0.9978727396672898, 1e-12);
  EXPECT_NEAR(v[1], 0.74241, 1e-9);
  EXPECT_NEAR(v[2], 0.00234112723694894, 1e-12);
}

TEST(OptimizerVectors, RMSPropCentered) {
  Trajectory t;
  RMSPropOptimizer opt(0.01, {.decay = 0.9, .momentum = 0.9, .centered = true});
  EXPECT_NEAR(t.run(opt, kGrads)[0], 0.9978719460243892, 1e-12);
}

TEST(OptimizerVectors, RefVariablesFollowTheSameFormulas) {
  {
    Trajectory t(1.0, /*resource=*/false);
    AdamOptimizer opt;
    EXPECT_NEAR(t.run(opt, kGrads)[0], 0.9990228653813656, 1e-12);
  }
  Trajectory t(1.0, /*resource=*/false);
  MomentumOptimizer opt(0.1, 0.9);
  EXPECT_NEAR(t.run(opt, kGrads)[0], 0.9809, 1e-9);
}

TEST(OptimizerVectors, AdamsFirstStepInFloat) {  // case G32a
  Graph g;
  Variable w = get_variable(g, "w", {1}, {.initializer = zeros_initializer()});
  AdamOptimizer opt;
  Node& step = opt.apply_gradients({{GradValue(constant(g, std::vector<float>{0.1f}).output()), w}});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {}, {&step});
  EXPECT_FLOAT_EQ(floats(s.run({w.snapshot()})[0])[0], -0.00099999684f);
}

class OptimizerGraph : public ::testing::Test {
 protected:
  Graph g;
  Variable v = get_variable(g, "v", {2}, {.initializer = ones_initializer()});
  Variable w = get_variable(g, "w", {2}, {.initializer = ones_initializer()});
  Tensor loss = reduce_sum(v * w);
  std::vector<std::string> slots() {
    std::vector<std::string> out;
    for (const Variable& x : global_variables(g)) {
      if (!x.trainable()) out.push_back(x.name());
    }
    return out;
  }
};

TEST_F(OptimizerGraph, SlotsAndUpdatesCarryTensorFlowsNames) {
  AdamOptimizer adam;
  RMSPropOptimizer rms(0.1, {.momentum = 0.9, .centered = true});
  MomentumOptimizer momentum(0.1, 0.9, {.use_nesterov = true});
  AdamOptimizer again;
  adam.minimize(loss);
  rms.minimize(loss);
  momentum.minimize(loss);
  again.minimize(loss);
  EXPECT_THAT(slots(), ElementsAre("beta1_power", "beta2_power", "v/Adam", "v/Adam_1", "w/Adam", "w/Adam_1",
                                   "v/RMSProp", "v/RMSProp_1", "v/RMSProp_2", "w/RMSProp", "w/RMSProp_1",
                                   "w/RMSProp_2", "v/Momentum", "w/Momentum", "beta1_power_1",
                                   "beta2_power_1", "v/Adam_2", "v/Adam_3", "w/Adam_2", "w/Adam_3"));
  EXPECT_THAT(nodes_under(g, "v/Momentum"),
              ElementsAre("v/Momentum/Initializer/zeros Const()", "v/Momentum VarHandleOp()",
                          "v/Momentum/IsInitialized/VarIsInitializedOp VarIsInitializedOp(v/Momentum)",
                          "v/Momentum/Assign AssignVariableOp(v/Momentum, v/Momentum/Initializer/zeros)",
                          "v/Momentum/Read/ReadVariableOp ReadVariableOp(v/Momentum)"));
  EXPECT_EQ(
      nodes_under(g, "Momentum/update_v")[0],
      "Momentum/update_v/ResourceApplyMomentum ResourceApplyMomentum(v, v/Momentum, Momentum/learning_rate, "
      "gradients_2/mul_grad/tuple/control_dependency, Momentum/momentum)");
  EXPECT_EQ(
      nodes_under(g, "RMSProp/update_w")[0],
      "RMSProp/update_w/ResourceApplyCenteredRMSProp ResourceApplyCenteredRMSProp(w, w/RMSProp_1, w/RMSProp, "
      "w/RMSProp_2, RMSProp/learning_rate, RMSProp/decay, RMSProp/momentum, RMSProp/epsilon, "
      "gradients_1/mul_grad/tuple/control_dependency_1)");
  EXPECT_THAT(nodes_under(g, "Adam/update_v"),
              ElementsAre("Adam/update_v/ResourceApplyAdam/ReadVariableOp ReadVariableOp(beta1_power)",
                          "Adam/update_v/ResourceApplyAdam/ReadVariableOp_1 ReadVariableOp(beta2_power)",
                          "Adam/update_v/ResourceApplyAdam ResourceApplyAdam(v, v/Adam, v/Adam_1, "
                          "Adam/update_v/ResourceApplyAdam/ReadVariableOp, "
                          "Adam/update_v/ResourceApplyAdam/ReadVariableOp_1, Adam/learning_rate, Adam/beta1, "
                          "Adam/beta2, Adam/epsilon, gradients/mul_grad/tuple/control_dependency)"));
  EXPECT_EQ(g.node("Momentum").op(), "NoOp");
  EXPECT_EQ(momentum.get_slot(v, "momentum").name(), "v/Momentum");
  EXPECT_THAT(adam.get_slot_names(), ElementsAre("m", "v"));
  std::vector<std::string> train;
  for (auto& e : g.collections().elements(graph::keys::kTrainOp)) train.push_back(e.node->name());
  EXPECT_THAT(train, ElementsAre("Adam", "RMSProp", "Momentum", "Adam_1"));
}

TEST_F(OptimizerGraph, TheStepIsCountedAfterTheUpdates) {
  GradientDescentOptimizer opt(0.1);
  Variable step = get_or_create_global_step(g);
  Node& n = opt.minimize(loss, step);
  EXPECT_EQ(n.name(), "GradientDescent");
  EXPECT_THAT(nodes_under(g, "GradientDescent/update "), ::testing::IsEmpty());
  EXPECT_EQ(g.node("GradientDescent/update").op(), "NoOp");
  EXPECT_THAT(nodes_under(g, "GradientDescent/Const"),
              ElementsAre("GradientDescent/Const Const(^GradientDescent/update)"));
  EXPECT_EQ(n.op(), "AssignAddVariableOp");
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int i = 0; i < 3; ++i) s.run({}, {}, {&n});
  EXPECT_EQ(s.run({step.snapshot()})[0].as<int64_t>()[0], 3);
}

TEST_F(OptimizerGraph, GateGraphHoldsAllGradientsBack) {
  GradientDescentOptimizer opt(0.1);
  auto pairs = opt.compute_gradients(loss, {.gate_gradients = Gate::kGraph});
  EXPECT_EQ(pairs[0].grad.dense.node->name(), "tuple/control_dependency");
  EXPECT_EQ(pairs[1].grad.dense.node->name(), "tuple/control_dependency_1");
}

TEST_F(OptimizerGraph, ATensorRateIsReadEachStep) {
  Tensor rate = placeholder(g, DType::kFloat, {}, "rate");
  GradientDescentOptimizer opt(rate);
  Node& n = opt.minimize(reduce_sum(multiply(v, 1.0)), {}, {.var_list = std::vector<Variable>{v}});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {{rate, Array::scalar<float>(0.25f)}}, {&n});
  EXPECT_THAT(floats(s.run({v.snapshot()})[0]), ElementsAre(0.75f, 0.75f));
  s.run({}, {{rate, Array::scalar<float>(0.5f)}}, {&n});
  EXPECT_THAT(floats(s.run({v.snapshot()})[0]), ElementsAre(0.25f, 0.25f));
}

TEST_F(OptimizerGraph, ErrorsCarryTensorFlowsTexts) {
  GradientDescentOptimizer opt(0.1);
  EXPECT_THAT(error_of([&] { opt.apply_gradients({}); }), HasSubstr("No variables provided."));
  EXPECT_THAT(error_of([&] {
                opt.apply_gradients({{GradValue(), v}});
              }),
              HasSubstr("No gradients provided for any variable: ['v']."));
  Graph empty;
  EXPECT_THAT(error_of([&] { opt.minimize(constant(empty, 1.0)); }), HasSubstr("No variables to optimize."));
  EXPECT_THAT(error_of([&] { opt.minimize(constant(g, 1)); }), HasSubstr("Invalid type int32"));
}

TEST(OptimizerErrors, NamesTheOpThatCutsThePath) {  // case G28
  Graph g;
  Variable w = get_variable(g, "w", {3}, {.initializer = ones_initializer()});
  Tensor x = placeholder(g, DType::kFloat, {2, 3}, "x");
  Tensor picked = argmax(multiply(x, w), 1, "picked");
  Tensor loss = reduce_mean(square(cast(picked, DType::kFloat)));
  GradientDescentOptimizer opt(0.1);
  EXPECT_THAT(error_of([&] { opt.minimize(loss); }),
              AllOf(HasSubstr("No gradients provided for any variable"), HasSubstr("'w'"),
                    HasSubstr("no gradient flows through 'picked' (op type: ArgMax) made at"),
                    HasSubstr("optimizer_test.cpp")));
  get_variable(g, "i", {2}, {.dtype = DType::kInt32});
  EXPECT_THAT(error_of([&] { opt.minimize(loss); }), AllOf(HasSubstr("int32"), HasSubstr("'i'")));
}

// Row 1 is gathered twice, with gradients that add up to 2; rows 0 and 2 stay.
std::vector<float> after_sparse_steps(Optimizer& opt, int steps) {
  Graph g;
  Variable p = get_variable(g, "p", {3, 1}, {.initializer = zeros_initializer()});
  Tensor i = constant(g, std::vector<int32_t>{1, 1});
  Node& n = opt.minimize(reduce_sum(gather(p, i)));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int k = 0; k < steps; ++k) s.run({}, {}, {&n});
  return floats(s.run({p.snapshot()})[0]);
}

TEST(OptimizerSparse, DuplicateRowsAreSummedFirst) {
  GradientDescentOptimizer sgd(0.5);
  EXPECT_THAT(after_sparse_steps(sgd, 1), ElementsAre(0, -1, 0));
  MomentumOptimizer momentum(0.5, 0.5);
  EXPECT_THAT(after_sparse_steps(momentum, 2), ElementsAre(0, -2.5f, 0));  // 1, then 0.5·(0.5·2 + 2)
  AdamOptimizer adam(0.5);
  EXPECT_THAT(after_sparse_steps(adam, 1), ElementsAre(0, ::testing::FloatNear(-0.5f, 1e-5f), 0));
  RMSPropOptimizer rms(0.5, {.decay = 0.5, .epsilon = 0});
  // rms = 1 + (4 - 1)/2
  EXPECT_THAT(after_sparse_steps(rms, 1),
              ElementsAre(0, ::testing::FloatNear(-1 / std::sqrt(2.5f), 1e-5f), 0));
}

}  // namespace
}  // namespace sluice::dsl::train
