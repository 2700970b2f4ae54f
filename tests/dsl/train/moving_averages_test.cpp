// graph-and-training §4.5: moving averages of variables and tensors, and the optimizer that keeps them.

#include "dsl/train/moving_averages.h"

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pair;

class MovingAverages : public ::testing::Test {
 protected:
  Graph g;
  Variable v = get_variable(g, "v", {1}, {.initializer = zeros_initializer()});
  Tensor fed = placeholder(g, DType::kFloat, {1}, "fed");
  float value(Session& s, const Variable& x) { return floats(s.run({x.snapshot()})[0])[0]; }
};

TEST_F(MovingAverages, EffectiveDecayFollowsTheNumberOfUpdates) {  // start 0, values 1, 2, 3: .9, 1.8, 2.7
  Variable n = get_or_create_global_step(g);
  ExponentialMovingAverage ema(0.999, {.num_updates = Operand(n)});
  Node& set = assign_op(v, fed);
  Node* averaged = nullptr;
  {
    graph::ControlDependencies after(g, {&set});
    averaged = &ema.apply(g);
  }
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  graph::ControlDependencies after(g, {averaged});
  Node& step = assign_add_op(n, 1);
  const float want[] = {0.9f, 1.8f, 2.7f};
  for (int k = 0; k < 3; ++k) {
    s.run({}, {{fed, vec({static_cast<float>(k + 1)})}}, {&step});
    EXPECT_NEAR(value(s, ema.average(v)), want[k], 1e-6);
  }
}

TEST_F(MovingAverages, ZeroDebiasCorrectsAveragesOfTensors) {  // decay .9, values 1, 2, 3
  ExponentialMovingAverage ema(0.9, {.zero_debias = true});
  Tensor t = multiply(fed, 1.0, "t");
  Node& averaged = ema.apply(g, std::vector<Variable>{}, {t});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int k = 1; k <= 3; ++k) s.run({}, {{fed, vec({static_cast<float>(k)})}}, {&averaged});
  EXPECT_NEAR(value(s, ema.average(t)), 2.0701107, 1e-6);
  std::vector<std::string> names;
  for (const Variable& x : global_variables(g)) names.push_back(x.name());
  EXPECT_THAT(names, ElementsAre("v", "t/ExponentialMovingAverage", "t/ExponentialMovingAverage/biased",
                                 "t/ExponentialMovingAverage/local_step"));
  EXPECT_NEAR(value(s, global_variables(g)[2]), 0.561, 1e-6);
}

TEST_F(MovingAverages, ZeroDebiasNeverAppliesToVariables) {
  ExponentialMovingAverage ema(0.9, {.zero_debias = true});
  ema.apply(g);
  EXPECT_EQ(global_variables(g).size(), 2u);
}

TEST_F(MovingAverages, ASecondDebiasedUpdateNumbersItsVariables) {
  Node& first = assign_moving_average(v, fed, 0.9, true);
  Node& second = assign_moving_average(v, fed, 0.5, true);
  EXPECT_EQ(first.op(), "AssignVariableOp");
  std::vector<std::string> names;
  for (const Variable& x : global_variables(g)) names.push_back(x.name());
  EXPECT_THAT(names, ElementsAre("v", "v/biased", "v/local_step", "v/biased_1", "v/local_step_1"));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {{fed, vec({4})}}, {&second});
  EXPECT_NEAR(value(s, v), 4, 1e-6);
}

TEST_F(MovingAverages, UnderAVariableScopeItsPathComesTwice) {
  VariableScope scope(g, "s");
  Variable w = get_variable(g, "w", {1}, {.initializer = zeros_initializer()});
  assign_moving_average(w, fed, 0.9, true);
  std::vector<std::string> names;
  for (const Variable& x : global_variables(g, "s/")) names.push_back(x.name());
  EXPECT_THAT(names, ElementsAre("s/w", "s/s/w/biased", "s/s/w/local_step"));
}

TEST_F(MovingAverages, TheUpdateIsOneSubtractionInTheScopeOfItsName) {
  Node& n = assign_moving_average(v, fed, 0.75, false);
  EXPECT_EQ(n.name(), "AssignMovingAvg/AssignSubVariableOp");
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {{fed, vec({4})}}, {&n});
  EXPECT_FLOAT_EQ(value(s, v), 1);
}

TEST_F(MovingAverages, ShadowsStartAtTheValueOfTheirVariable) {
  Variable w = get_variable(g, "w", {2}, {.initializer = random_normal_initializer()});
  ExponentialMovingAverage ema(0.9);
  Node& applied = ema.apply(g);
  EXPECT_EQ(applied.name(), "ExponentialMovingAverage");
  EXPECT_EQ(ema.average(w).name(), "w/ExponentialMovingAverage");
  EXPECT_FALSE(ema.average(w).trainable());
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_EQ(floats(s.run({w.snapshot()})[0]), floats(s.run({ema.average(w).snapshot()})[0]));
  // A shadow that a checkpoint lacks takes what its variable holds.
  s.run({}, {}, {&assign_op(w, constant(g, std::vector<float>{5, 6}))});
  s.run({}, {}, {&ema.average(w).initializer()});
  EXPECT_THAT(floats(s.run({ema.average(w).snapshot()})[0]), ElementsAre(5, 6));
}

TEST_F(MovingAverages, DefaultIsTheTrainableVariablesWhichJoinTheirCollection) {
  get_variable(g, "fixed", {1}, {.trainable = false});
  ExponentialMovingAverage ema(0.9);
  ema.apply(g);
  std::vector<std::string> names;
  for (const Variable& x : get_variables(g, graph::keys::kMovingAverageVariables)) names.push_back(x.name());
  EXPECT_THAT(names, ElementsAre("v"));
}

TEST_F(MovingAverages, OnlyFloatingPointIsAveraged) {
  Variable i = get_variable(g, "i", {1}, {.dtype = DType::kInt32});
  ExponentialMovingAverage ema(0.9);
  EXPECT_THAT(error_of([&] { ema.apply(g, std::vector<Variable>{i}); }),
              HasSubstr("The variables must be half, float, or double: i"));
}

TEST_F(MovingAverages, NamesAreKnownBeforeTheShadows) {
  ExponentialMovingAverage ema(0.9);
  EXPECT_FALSE(ema.average(v));
  EXPECT_EQ(ema.average_name(v), "v/ExponentialMovingAverage");
  ema.apply(g);
  EXPECT_EQ(ema.average_name(v), "v/ExponentialMovingAverage");
  ExponentialMovingAverage second(0.9);
  EXPECT_EQ(second.average_name(v), "v/ExponentialMovingAverage_1");
}

TEST_F(MovingAverages, VariablesToRestoreLoadAveragesIntoTheVariables) {
  Variable step = get_or_create_global_step(g);
  ExponentialMovingAverage ema(0.9);
  ema.apply(g);
  std::vector<std::pair<std::string, std::string>> map;
  for (const auto& [name, x] : ema.variables_to_restore(g)) map.emplace_back(name, x.name());
  EXPECT_THAT(map, ElementsAre(Pair("global_step", "global_step"), Pair("v/ExponentialMovingAverage", "v")));
}

TEST(PartitionedAverages, ArePartsOfOneAverage) {
  Graph g;
  PartitionedVariable emb = get_variable(g, "emb", {4, 2}, fixed_size_partitioner(2));
  ExponentialMovingAverage ema(0.9);
  ema.apply(g);
  for (const Variable& part : emb.parts()) {
    const auto& slice = ema.average(part).info()->slice;
    ASSERT_TRUE(slice);
    EXPECT_EQ(slice->full_name, "emb/ExponentialMovingAverage");
  }
}

TEST(MovingAverageTraining, AveragesAreSavedUnderTheNamesOfTheirVariables) {
  const std::filesystem::path dir =
      std::filesystem::path(::testing::TempDir()) / "sluice_moving_average_training";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  std::string path;
  float weight = 0, average = 0;
  {
    Graph g;
    Variable w = get_variable(g, "w", {1}, {.initializer = zeros_initializer()});
    GradientDescentOptimizer sgd(1.0);
    MovingAverageOptimizer opt(sgd, {.average_decay = 0.5});
    EXPECT_THAT(error_of([&] { opt.swapped_variables(); }),
                HasSubstr("Must call apply_gradients or minimize before creating the swapping_saver"));
    Node& step = opt.minimize(reduce_sum(w), get_or_create_global_step(g));
    EXPECT_EQ(step.name(), "train_with_avg");
    EXPECT_THAT(error_of([&] { opt.swapped_variables(std::vector<Variable>{w}); }),
                HasSubstr("Variable to swap w/ExponentialMovingAverage is not in variables to save."));
    Saver saver = opt.swapping_saver();
    Session s(g);
    s.run({}, {}, {&global_variables_initializer(g)});
    for (int k = 0; k < 2; ++k) s.run({}, {}, {&step});
    weight = floats(s.run({w.snapshot()})[0])[0];
    average = floats(s.run({opt.averages().average(w).snapshot()})[0])[0];
    path = saver.save(s, (dir / "m").string());
  }
  EXPECT_FLOAT_EQ(weight, -2);
  EXPECT_FLOAT_EQ(average, -1.25f);
  Graph g;  // evaluation knows nothing of averages
  Variable w = get_variable(g, "w", {1});
  Saver saver(g);
  Session s(g);
  saver.restore(s, path);
  EXPECT_FLOAT_EQ(floats(s.run({w.snapshot()})[0])[0], -1.25f);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace sluice::dsl::train
