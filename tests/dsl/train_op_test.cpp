#include "dsl/train/train_op.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// 16 rows of 4, one 1 in each: columns 0 and 1 mean class 0, 2 and 3 class 1.
struct Data {
  std::vector<float> inputs = std::vector<float>(64, 0.0f), labels = std::vector<float>(16, 0.0f);
  Data() {
    for (int i = 0; i < 16; ++i) {
      int label = (i * 7 / 3) % 2;
      labels[static_cast<size_t>(i)] = static_cast<float>(label);
      inputs[static_cast<size_t>(4 * i + 2 * label + (i * 5 / 4) % 2)] = 1;
    }
  }
};

class TrainOp : public ::testing::Test {
 protected:
  Graph g;
  Data data;
  Tensor inputs = constant(g, data.inputs, {16, 4}), labels = constant(g, data.labels, {16, 1});

  Tensor logistic(const Tensor& x) {
    Tensor p = layers::dense(x, 1, {.activation = layers::kSigmoid, .naming = layers::Naming::kContrib});
    losses::log_loss(labels, p);
    return losses::get_total_loss(g);
  }
  Tensor batch_norm_logistic() {
    return logistic(layers::batch_normalization(
        inputs, {.training = true, .momentum = 0.1, .scale = false, .naming = layers::Naming::kContrib}));
  }
  float run_steps(Session& s, const Tensor& op, int n) {
    float loss = 0;
    for (int i = 0; i < n; ++i) loss = floats(s.run({op})[0])[0];
    return loss;
  }
  void init(Session& s) { s.run({}, {}, {&global_variables_initializer(g)}); }
  int64_t step_of(Session& s) { return s.run({get_global_step(g).snapshot()})[0].as<int64_t>()[0]; }
};

TEST_F(TrainOp, TheLogisticClassifierConverges) {  // §5.4
  g.set_seed(0);
  Tensor loss = logistic(inputs);
  GradientDescentOptimizer opt(1.0);
  Tensor op = create_train_op(loss, opt);
  Session s(g);
  init(s);
  EXPECT_LT(run_steps(s, op, 300), 0.015f);
  EXPECT_EQ(step_of(s), 300);
}

TEST_F(TrainOp, TheBatchNormClassifierConverges) {  // §5.4
  g.set_seed(0);
  Tensor loss = batch_norm_logistic();
  GradientDescentOptimizer opt(1.0);
  Tensor op = create_train_op(loss, opt);
  Session s(g);
  init(s);
  EXPECT_LT(run_steps(s, op, 300), 0.1f);
}

TEST_F(TrainOp, UpdateOpsMoveTheAveragesToTheBatchStatistics) {  // §5.4
  Tensor loss = batch_norm_logistic();
  GradientDescentOptimizer opt(1.0);
  Tensor op = create_train_op(loss, opt);
  Session s(g);
  init(s);
  run_steps(s, op, 10);
  std::vector<double> mean(4), var(4);
  for (size_t i = 0; i < 64; ++i) mean[i % 4] += data.inputs[i] / 16;
  for (size_t i = 0; i < 64; ++i)
    var[i % 4] += (data.inputs[i] - mean[i % 4]) * (data.inputs[i] - mean[i % 4]) / 16;
  auto got_mean = floats(s.run({g.output("BatchNorm/moving_mean/Read/ReadVariableOp:0")})[0]);
  auto got_var = floats(s.run({g.output("BatchNorm/moving_variance/Read/ReadVariableOp:0")})[0]);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(got_mean[c], mean[c], 1e-5);
    EXPECT_NEAR(got_var[c], var[c], 1e-5);
  }
}

TEST_F(TrainOp, NoUpdateOpsLeavesTheAverages) {
  Tensor loss = batch_norm_logistic();
  GradientDescentOptimizer opt(1.0);
  LogCapture log;
  Tensor op = create_train_op(loss, opt, {.update_ops = std::vector<Node*>{}});
  EXPECT_EQ(log.count("update_ops in create_train_op does not contain all the  update_ops"), 1);
  Session s(g);
  init(s);
  run_steps(s, op, 3);
  EXPECT_THAT(floats(s.run({g.output("BatchNorm/moving_mean/Read/ReadVariableOp:0")})[0]), Each(0.0f));
}

TEST_F(TrainOp, GlobalStepDefaultNoneOrAVariable) {
  Tensor loss = logistic(inputs);
  GradientDescentOptimizer opt(1.0);
  get_or_create_global_step(g);
  Variable own = make_variable(g, Literal::scalar<int64_t>(5), "own", {.trainable = false});
  Tensor a = create_train_op(loss, opt), b = create_train_op(loss, opt, {.global_step = GlobalStep::none()});
  Tensor c = create_train_op(loss, opt, {.global_step = own});
  Session s(g);
  init(s);
  run_steps(s, a, 10);
  EXPECT_EQ(step_of(s), 10);
  run_steps(s, b, 10);
  EXPECT_EQ(step_of(s), 10);
  run_steps(s, c, 2);
  EXPECT_EQ(step_of(s), 10);
  EXPECT_EQ(s.run({own.snapshot()})[0].as<int64_t>()[0], 7);
}

TEST_F(TrainOp, NodesCarryTensorFlowsNames) {
  Tensor loss = batch_norm_logistic();
  MomentumOptimizer opt(0.1, 0.9);
  Tensor op = create_train_op(loss, opt);
  EXPECT_EQ(op.node().name(), "train_op/control_dependency");
  EXPECT_EQ(g.node("train_op/CheckNumerics").attr<std::string>("message"), "LossTensor is inf or nan");
  EXPECT_EQ(g.node("update_barrier").control_inputs().size(), 2u);
  std::vector<std::string> train;
  for (auto& e : g.collections().elements(graph::keys::kTrainOp)) train.push_back(e.node->name());
  EXPECT_THAT(train, ElementsAre("Momentum", "train_op/control_dependency"));
}

TEST_F(TrainOp, ABadLossStopsTheStep) {
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  Tensor x = placeholder(g, DType::kFloat, {}, "x");
  GradientDescentOptimizer opt(1.0);
  Tensor op = create_train_op(multiply(w, x), opt);
  Session s(g);
  init(s);
  EXPECT_THAT(error_of([&] {
                s.run({op}, {{x, Array::scalar<float>(kNan)}});
              }),
              AllOf(HasSubstr("LossTensor is inf or nan : Tensor had NaN values"),
                    HasSubstr("train_op/CheckNumerics")));
}

TEST_F(TrainOp, GuardedUpdatesLeaveEverythingAsItWas) {  // case N03
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  Tensor x = placeholder(g, DType::kFloat, {}, "x"), rate = placeholder(g, DType::kFloat, {}, "rate");
  Variable average = get_variable(g, "average", {}, {.initializer = zeros_initializer(), .trainable = false});
  g.collections().add(graph::keys::kUpdateOps,
                      graph::GraphElement{&assign_add_op(average, constant(g, 1.0)), -1});
  GradientDescentOptimizer opt(rate);
  Tensor op = create_train_op(multiply(w, x), opt, {.guard_updates = true});
  Session s(g);
  init(s);
  auto feed = [&](float xv, float r) {
    return std::vector<Feed>{{x, Array::scalar<float>(xv)}, {rate, Array::scalar<float>(r)}};
  };
  auto state = [&] {
    auto v = s.run({w.snapshot(), average.snapshot(), get_global_step(g).snapshot()});
    return std::vector<double>{floats(v[0])[0], floats(v[1])[0], static_cast<double>(v[2].as<int64_t>()[0])};
  };
  EXPECT_THAT(error_of([&] { s.run({op}, feed(kNan, 1)); }), HasSubstr("inf or nan"));
  EXPECT_THAT(error_of([&] { s.run({op}, feed(1, std::numeric_limits<float>::infinity())); }),
              HasSubstr("learning_rate of GradientDescent is inf or nan : Tensor had Inf values"));
  EXPECT_THAT(state(), ElementsAre(1, 0, 0));
  s.run({op}, feed(0.25f, 1));
  EXPECT_THAT(state(), ElementsAre(0.75, 1, 1));
}

TEST_F(TrainOp, ChecksOnAllNodesNameTheApplyOp) {  // case N03
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  Tensor rate = placeholder(g, DType::kFloat, {}, "rate");
  GradientDescentOptimizer opt(rate);
  opt.minimize(multiply(w, 2.0));
  Node& all = add_check_numerics_ops(g);
  Session s(g);
  init(s);
  s.run({}, {{rate, Array::scalar<float>(0.5f)}}, {&all});
  EXPECT_THAT(error_of([&] {
                s.run({}, {{rate, Array::scalar<float>(std::numeric_limits<float>::max() * 2)}}, {&all});
              }),
              HasSubstr("rate:0"));
  EXPECT_THAT(error_of([&] {
                s.run({}, {{rate, Array::scalar<float>(3e38f)}}, {&all});
              }),
              HasSubstr("GradientDescent/update_w/ResourceApplyGradientDescent: variable w"));
}

TEST_F(TrainOp, TransformMaySeeNoneDropAndClip) {
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  Variable u = get_variable(g, "unused", {}, {.initializer = ones_initializer()});
  GradientDescentOptimizer opt(1.0);
  int seen = 0;
  TrainOpOptions o;
  o.transform_grads_fn = [&](const GradsAndVars& p) {
    seen = static_cast<int>(p.size());
    EXPECT_TRUE(p[1].grad.none());
    return clip_gradient_norms(GradsAndVars{p[0]}, 3);
  };
  Tensor op = create_train_op(multiply(w, 4.0), opt, o);
  EXPECT_EQ(seen, 2);
  Session s(g);
  init(s);
  s.run({op});
  EXPECT_FLOAT_EQ(floats(s.run({w.snapshot()})[0])[0], -2.0f);  // 4 clipped to 3
}

TEST_F(TrainOp, SummariesOfGradients) {
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  GradientDescentOptimizer opt(1.0);
  create_train_op(multiply(w, 4.0), opt, {.summarize_gradients = true});
  std::vector<std::string> names;
  for (auto& e : g.collections().elements(graph::keys::kSummaries)) names.push_back(e.node->name());
  EXPECT_THAT(names, ElementsAre("summarize_grads/w_gradient", "summarize_grads/w_gradient_norm"));
}

TEST_F(TrainOp, VariablesToTrainMustBeTrainable) {
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  Variable fixed = get_variable(g, "fixed", {}, {.trainable = false});
  GradientDescentOptimizer opt(1.0);
  Tensor loss = multiply(w, 4.0);
  EXPECT_THAT(
      error_of([&] { create_train_op(loss, opt, {.variables_to_train = std::vector<Variable>{fixed}}); }),
      HasSubstr("'fixed' is not trainable"));
  EXPECT_THAT(error_of([&] { create_train_op(loss, opt, {.variables_to_train = std::vector<Variable>{}}); }),
              HasSubstr("no variables to train"));
}

TEST_F(TrainOp, MovingStatisticsCaseC06) {
  Tensor x = constant(g, std::vector<float>{9, 11, 9, 11}, {4, 1, 1, 1});
  layers::batch_normalization(x, {.training = true, .momentum = 0.9, .name = "bn"});
  Tensor loss = reduce_sum(Tensor(g.output("bn/FusedBatchNormV3:0"))) +
                reduce_sum(get_variable(g, "w", {1}, {.initializer = ones_initializer()}));
  GradientDescentOptimizer opt(0.1);
  Tensor op = create_train_op(loss, opt);
  LogCapture log;
  Node& bare = opt.minimize(loss);
  EXPECT_EQ(log.count("UPDATE_OPS"), 1);
  opt.minimize(loss);
  EXPECT_EQ(log.count("UPDATE_OPS"), 1);  // once a graph
  auto mean = [&](Session& s) {
    return floats(s.run({g.output("bn/moving_mean/Read/ReadVariableOp:0")})[0])[0];
  };
  Session a(g), b(g), c(g);
  init(a);
  run_steps(a, op, 1);
  EXPECT_FLOAT_EQ(mean(a), 1.0f);
  run_steps(a, op, 1);
  EXPECT_FLOAT_EQ(mean(a), 1.9f);
  init(b);
  b.run({}, {}, {&bare});
  EXPECT_EQ(mean(b), 0.0f);
  init(c);
  c.run({loss});  // forward only
  EXPECT_EQ(mean(c), 0.0f);
}

TEST_F(TrainOp, MinimizeInsideControlDependenciesDoesNotWarn) {
  batch_norm_logistic();
  std::vector<Node*> updates;
  for (auto& e : g.collections().elements(graph::keys::kUpdateOps)) updates.push_back(e.node);
  GradientDescentOptimizer opt(0.1);
  LogCapture log;
  ControlDependencies deps(g, updates);
  opt.minimize(losses::get_losses(g)[0]);
  EXPECT_EQ(log.count("UPDATE_OPS"), 0);
}

class GradientHelpers : public ::testing::Test {
 protected:
  Graph g;
  Variable v = get_variable(g, "fc/w", {1}, {.initializer = ones_initializer()});
  Variable u = get_variable(g, "fc/b", {1}, {.initializer = ones_initializer()});
  GradsAndVars pairs{{GradValue(constant(g, std::vector<float>{4}).output()), v}, {GradValue(), u}};
};

TEST_F(GradientHelpers, ClipsEachByItsOwnNorm) {
  auto out = clip_gradient_norms_fn(3)(pairs);
  EXPECT_THAT(run(dense(out[0].grad)), ElementsAre(FloatEq(3)));
  EXPECT_TRUE(out[1].grad.none());
}

TEST_F(GradientHelpers, MultipliersByVariableOrName) {
  auto by_name = multiply_gradients(pairs, {{"fc/w", 1000.0}});
  EXPECT_THAT(run(dense(by_name[0].grad)), ElementsAre(4000));
  auto both = multiply_gradients(pairs, {{"fc/w", 1000.0}, {v, 2.0}});
  EXPECT_THAT(run(dense(both[0].grad)), ElementsAre(8));  // the variable key wins
}

TEST_F(GradientHelpers, MultiplierErrorsAndNearNames) {
  EXPECT_THAT(error_of([&] { multiply_gradients(pairs, {}); }),
              HasSubstr("`gradient_multipliers` is empty."));
  EXPECT_THAT(error_of([&] {
                multiply_gradients(pairs, {{u, 2.0}});
              }),
              HasSubstr("Requested multiple of `None` gradient."));
  LogCapture log;
  multiply_gradients(pairs, {{"fc/ww", 2.0}});
  EXPECT_EQ(log.count("'fc/ww'"), 1);
  EXPECT_EQ(log.count("fc/w'"), 1);
}

TEST(GlobalStepTest, RulesOfTheCollection) {
  Graph g;
  EXPECT_FALSE(static_cast<bool>(get_global_step(g)));
  VariableScope s(g, "scope");
  NameScope n(g, "names");
  Variable step = get_or_create_global_step(g);
  EXPECT_EQ(step.name(), "global_step");
  EXPECT_EQ(step.dtype(), DType::kInt64);
  EXPECT_FALSE(step.trainable());
  EXPECT_EQ(get_or_create_global_step(g), step);
  EXPECT_THAT(error_of([&] { create_global_step(g); }), HasSubstr("already exists"));
  Graph h;
  Variable f = make_variable(h, Literal::scalar(1.0f), "f", {.collections = {graph::keys::kGlobalStep}});
  EXPECT_THAT(error_of([&] { get_global_step(h); }), HasSubstr("does not have integer type"));
}

}  // namespace
}  // namespace sluice::dsl::train
