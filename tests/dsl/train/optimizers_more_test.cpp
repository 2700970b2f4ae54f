// Adagrad, AdagradDA, Adadelta, AdaMax, AdamW, Ftrl, the proximal two, LARS and LAMB: the vectors of
// graph-and-training §4.3, slots and their names, sparse gradients (§4.4), constraints and errors. Ten steps
// of each against TensorFlow: tests/conformance/train_values.py.

#include "dsl/train/optimizers_more.h"

#include <cmath>
#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/train/constraint.h"
#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One weight in double, gradients 0.1, -0.2, 0.3.
struct Trajectory {
  Graph g;
  Variable w, step;
  Tensor grad;
  explicit Trajectory(bool resource = true) {
    w = get_variable(g, "w", {1},
                     {.dtype = DType::kDouble, .initializer = ones_initializer(), .use_resource = resource});
    grad = placeholder(g, DType::kDouble, {1}, "grad");
    step = get_or_create_global_step(g);
  }
  // w, then the slots named, after the gradients.
  std::vector<double> run(Optimizer& opt, const std::vector<std::string>& slots = {},
                          const std::vector<double>& grads = {0.1, -0.2, 0.3}) {
    Node& update = opt.apply_gradients({{GradValue(grad.output()), w}}, step);
    Session s(g);
    s.run({}, {}, {&global_variables_initializer(g)});
    for (double d : grads) s.run({}, {{grad, Array::from<double>({1}, {d})}}, {&update});
    std::vector<Output> fetch{w.snapshot()};
    for (const std::string& name : slots) fetch.push_back(opt.get_slot(w, name).snapshot());
    std::vector<double> out;
    for (Array& a : s.run(fetch)) out.push_back(a.as<double>()[0]);
    return out;
  }
};

TEST(OptimizersMoreVectors, Adagrad) {
  Trajectory t;
  AdagradOptimizer opt(0.1);
  const auto v = t.run(opt, {"accumulator"});
  EXPECT_NEAR(v[0], 0.9602513999220764, 1e-12);
  EXPECT_NEAR(v[1], 0.24, 1e-12);
}

TEST(OptimizersMoreVectors, Adadelta) {
  Trajectory t;
  AdadeltaOptimizer opt(1.0);
  EXPECT_NEAR(t.run(opt)[0], 0.9994368843044593, 1e-12);
}

TEST(OptimizersMoreVectors, Ftrl) {
  Trajectory t;
  FtrlOptimizer opt(0.1, {.l1_regularization_strength = 0.01, .l2_regularization_strength = 0.02});
  const auto v = t.run(opt, {"accum", "linear"});
  EXPECT_NEAR(v[0], 0.0035824258414878, 1e-12);
  EXPECT_NEAR(v[1], 0.24, 1e-12);
  EXPECT_NEAR(v[2], -0.0276935277397210, 1e-12);
}

TEST(OptimizersMoreVectors, RefVariablesFollowTheSameFormulas) {
  Trajectory a(false), b(false);
  AdagradOptimizer adagrad(0.1);
  EXPECT_NEAR(a.run(adagrad)[0], 0.9602513999220764, 1e-12);
  FtrlOptimizer ftrl(0.1, {.l1_regularization_strength = 0.01, .l2_regularization_strength = 0.02});
  EXPECT_NEAR(b.run(ftrl)[0], 0.0035824258414878, 1e-12);
}

TEST(OptimizersMoreVectors, AdagradDualAveraging) {
  Trajectory t;
  AdagradDAOptimizer opt(0.5, t.step,
                         {.l1_regularization_strength = 0.01, .l2_regularization_strength = 0.1});
  // T is the step being made, from 1 on.
  const double sum = 0.2, squares = 0.1 + 0.01 + 0.04 + 0.09;
  const double want = -0.5 * (sum - 0.01 * 3) / (0.1 * 3 * 0.5 + std::sqrt(squares));
  const auto v = t.run(opt, {"gradient_accumulator", "gradient_squared_accumulator"});
  EXPECT_NEAR(v[0], want, 1e-12);
  EXPECT_NEAR(v[1], sum, 1e-12);
  EXPECT_NEAR(v[2], squares, 1e-12);
}

TEST(OptimizersMoreVectors, ProximalSteps) {
  Trajectory a, b;
  ProximalGradientDescentOptimizer sgd(
      0.1, {.l1_regularization_strength = 0.2, .l2_regularization_strength = 0.3});
  double w = 1;
  for (double g : {0.1, -0.2, 0.3}) w = (w - 0.1 * g - 0.02) / 1.03;
  EXPECT_NEAR(a.run(sgd)[0], w, 1e-12);
  ProximalAdagradOptimizer adagrad(0.1,
                                   {.l1_regularization_strength = 0.2, .l2_regularization_strength = 0.3});
  double acc = 0.1;
  w = 1;
  for (double g : {0.1, -0.2, 0.3}) {
    acc += g * g;
    const double rate = 0.1 / std::sqrt(acc);
    w = (w - rate * g - rate * 0.2) / (1 + 0.3 * rate);
  }
  EXPECT_NEAR(b.run(adagrad)[0], w, 1e-12);
}

TEST(OptimizersMoreVectors, AdaMax) {
  Trajectory t;
  AdaMaxOptimizer opt(0.01);
  double w = 1, m = 0, v = 0, power = 0.9;
  for (double g : {0.1, -0.2, 0.3}) {
    m = 0.9 * m + 0.1 * g;
    v = std::max(0.999 * v, std::fabs(g));
    w -= 0.01 / (1 - power) * m / (v + 1e-8);
    power *= 0.9;
  }
  EXPECT_NEAR(t.run(opt)[0], w, 1e-12);
}

TEST(OptimizersMoreVectors, AdamWDecaysBesideTheGradient) {
  for (const bool scaled : {false, true}) {
    Trajectory t;
    AdamWOptimizer opt(0.1, 0.01, {.scale_decay_by_rate = scaled});
    double w = 1, m = 0, v = 0;
    int k = 0;
    for (double g : {0.1, -0.2, 0.3}) {
      ++k;
      w -= (scaled ? 0.01 : 1.0) * 0.1 * w;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      w -= 0.01 * std::sqrt(1 - std::pow(0.999, k)) / (1 - std::pow(0.9, k)) * m / (std::sqrt(v) + 1e-8);
    }
    EXPECT_NEAR(t.run(opt)[0], w, 1e-12);
  }
}

TEST(OptimizersMoreVectors, AdamWLeavesVariablesOutsideItsListAlone) {
  Trajectory t;
  AdamWOptimizer opt(0.1, 0.001, {.decay_var_list = std::vector<Variable>{}});
  EXPECT_NEAR(t.run(opt)[0], 0.9990228653813656, 1e-12);  // Adam's vector
}

TEST(OptimizersMoreVectors, LarsTrustsByTheRatioOfNorms) {
  Trajectory t;
  LARSOptimizer opt(0.1, {.weight_decay = 0.01, .eeta = 0.5});
  double w = 1, a = 0;
  for (double g : {0.1, -0.2, 0.3}) {
    const double trust = 0.5 * w / (std::fabs(g) + 0.01 * w);
    a = 0.9 * a + 0.1 * trust * (g + 0.01 * w);
    w -= a;
  }
  EXPECT_NEAR(t.run(opt)[0], w, 1e-12);
}

TEST(OptimizersMoreVectors, LarsIsMomentumForSkippedNamesAndForNormsOfZero) {
  Trajectory skipped, zero;
  LARSOptimizer opt(0.1, {.skip_list = {"w"}}), other(0.1, {.weight_decay = 0});
  EXPECT_NEAR(skipped.run(opt)[0], 0.9809, 1e-12);  // Momentum's vector
  EXPECT_NEAR(zero.run(other, {}, {0.0})[0], 1, 1e-15);
}

TEST(OptimizersMoreVectors, LambCorrectsBiasAndScalesByTheRatioOfNorms) {
  Trajectory t;
  LAMBOptimizer opt(0.01, {.weight_decay = 0.1});
  double w = 1, m = 0, v = 0;
  int k = 0;
  for (double g : {0.1, -0.2, 0.3}) {
    ++k;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double r = m / (1 - std::pow(0.9, k)) / (std::sqrt(v / (1 - std::pow(0.999, k))) + 1e-6) + 0.1 * w;
    w -= 0.01 * std::fabs(w) / std::fabs(r) * r;
  }
  EXPECT_NEAR(t.run(opt)[0], w, 1e-12);
  Trajectory plain;
  LAMBOptimizer excluded(
      0.01,
      {.weight_decay = 0.1, .exclude_from_weight_decay = {"w"}, .exclude_from_layer_adaptation = {"w"}});
  w = 1, m = 0, v = 0, k = 0;
  for (double g : {0.1, -0.2, 0.3}) {
    ++k;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= 0.01 * m / (1 - std::pow(0.9, k)) / (std::sqrt(v / (1 - std::pow(0.999, k))) + 1e-6);
  }
  EXPECT_NEAR(plain.run(excluded)[0], w, 1e-12);
}

// Slot variables under TensorFlow's names, in creation order, and what they start at.
using Slots = std::vector<std::pair<std::string, float>>;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const Variable& step)>;
Slots slots_of(const MakeOptimizer& make) {
  Graph g;
  Variable w = get_variable(g, "w", {2}, {.initializer = ones_initializer()});
  const std::unique_ptr<Optimizer> opt = make(get_or_create_global_step(g));
  opt->minimize(reduce_sum(multiply(w, w)), get_or_create_global_step(g));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  Slots out;
  for (const Variable& v : global_variables(g))
    if (v.name().find('/') != std::string::npos || v.name().find("power") != std::string::npos)
      out.emplace_back(v.name(), floats(s.run({v.snapshot()})[0])[0]);
  return out;
}

TEST(OptimizerSlots, CarryTensorFlowsNamesAndInitialValues) {
  using ::testing::Pair;
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<AdagradOptimizer>(0.1); }),
              ElementsAre(Pair("w/Adagrad", 0.1f)));
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<AdadeltaOptimizer>(); }),
              ElementsAre(Pair("w/Adadelta", 0.f), Pair("w/Adadelta_1", 0.f)));
  EXPECT_THAT(slots_of([](const Variable& step) { return std::make_unique<AdagradDAOptimizer>(0.1, step); }),
              ElementsAre(Pair("w/AdagradDA", 0.f), Pair("w/AdagradDA_1", 0.1f)));
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<FtrlOptimizer>(0.1); }),
              ElementsAre(Pair("w/Ftrl", 0.1f), Pair("w/Ftrl_1", 0.f)));
  EXPECT_THAT(slots_of([](const Variable&) {
                return std::make_unique<FtrlOptimizer>(0.1,
                                                       FtrlOptions{.accum_name = "n", .linear_name = "z"});
              }),
              ElementsAre(Pair("w/n", 0.1f), Pair("w/z", 0.f)));
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<ProximalAdagradOptimizer>(0.1); }),
              ElementsAre(Pair("w/ProximalAdagrad", 0.1f)));
  EXPECT_THAT(
      slots_of([](const Variable&) { return std::make_unique<ProximalGradientDescentOptimizer>(0.1); }),
      ElementsAre());
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<AdaMaxOptimizer>(); }),
              ElementsAre(Pair("beta1_power", 0.9f), Pair("w/AdaMax", 0.f), Pair("w/AdaMax_1", 0.f)));
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<AdamWOptimizer>(0.01); }),
              ElementsAre(Pair("beta1_power", 0.9f), Pair("beta2_power", 0.999f), Pair("w/AdamW", 0.f),
                          Pair("w/AdamW_1", 0.f)));
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<LARSOptimizer>(0.1); }),
              ElementsAre(Pair("w/LARSOptimizer", 0.f)));
  EXPECT_THAT(slots_of([](const Variable&) { return std::make_unique<LAMBOptimizer>(); }),
              ElementsAre(Pair("beta1_power", 0.9f), Pair("beta2_power", 0.999f), Pair("w/LAMB", 0.f),
                          Pair("w/LAMB_1", 0.f)));
}

TEST(OptimizerSlots, InsideAVariableScopeItsPathComesTwice) {
  Graph g;
  VariableScope scope(g, "s");
  Variable w = get_variable(g, "w", {1}, {.initializer = ones_initializer()});
  AdagradOptimizer opt(0.1);
  opt.minimize(reduce_sum(multiply(w, w)));
  EXPECT_EQ(opt.get_slot(w, "accumulator").name(), "s/s/w/Adagrad");
  EXPECT_FALSE(opt.get_slot(w, "accumulator").trainable());
  EXPECT_THAT(opt.get_slot_names(), ElementsAre("accumulator"));
}

// Rows 1, 1 of p [3, 1] are gathered: each step's gradient is 2 for row 1 and nothing for the others.
std::vector<float> sparse_steps(Optimizer& opt, int steps, bool resource = true) {
  Graph g;
  Variable p = get_variable(g, "p", {3, 1}, {.initializer = ones_initializer(), .use_resource = resource});
  Tensor rows = constant(g, std::vector<int32_t>{1, 1});
  Node& n = opt.minimize(reduce_sum(gather(p, rows)));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int k = 0; k < steps; ++k) s.run({}, {}, {&n});
  return floats(s.run({p.snapshot()})[0]);
}

TEST(SparseUpdates, TouchOnlyTheRowsTheyName) {
  for (const bool resource : {true, false}) {
    AdagradOptimizer adagrad(0.1);
    EXPECT_THAT(sparse_steps(adagrad, 1, resource),
                ElementsAre(1, testing::FloatNear(1 - 0.2f / std::sqrt(4.1f), 1e-6f), 1));
    ProximalGradientDescentOptimizer proximal(0.1, {.l2_regularization_strength = 1});
    EXPECT_THAT(sparse_steps(proximal, 1, resource),
                ElementsAre(1, testing::FloatNear(0.8f / 1.1f, 1e-6f), 1));
    GradientDescentOptimizer sgd(0.25);
    EXPECT_THAT(sparse_steps(sgd, 2, resource), ElementsAre(1, 0, 1));
  }
}

TEST(SparseUpdates, AdamWDecaysTheRowsOfItsGradient) {
  AdamWOptimizer opt(0.5, 0.0);
  EXPECT_THAT(sparse_steps(opt, 2), ElementsAre(1, 0.25f, 1));
}

TEST(SparseUpdates, AdamMovesEveryRowOnceItsAveragesAreThere) {
  Graph g;
  Variable p = get_variable(g, "p", {2, 1}, {.initializer = zeros_initializer()});
  Tensor row = placeholder(g, DType::kInt32, {1}, "row");
  AdamOptimizer opt(0.1);
  Node& n = opt.minimize(reduce_sum(gather(p, row)));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {{row, Array::from<int32_t>({1}, {0})}}, {&n});
  s.run({}, {{row, Array::from<int32_t>({1}, {1})}}, {&n});
  const auto v = floats(s.run({p.snapshot()})[0]);
  EXPECT_LT(v[0], -0.15f);  // moved in the second step too, by its decaying average
  const auto m = floats(s.run({opt.get_slot(p, "m").snapshot()})[0]);
  EXPECT_THAT(m, ElementsAre(testing::FloatNear(0.09f, 1e-6f), testing::FloatNear(0.1f, 1e-6f)));
}

TEST(SparseUpdates, AreSparseNodes) {
  Graph g;
  Variable p = get_variable(g, "p", {100, 4});
  Tensor ids = placeholder(g, DType::kInt64, {-1}, "ids");
  MomentumOptimizer opt(0.1, 0.9);
  opt.minimize(reduce_sum(embedding_lookup(p, ids)));
  std::vector<std::string> ops;
  for (Node* n : g.nodes()) ops.push_back(n->op());
  EXPECT_THAT(ops, testing::Contains("ResourceGather"));
  EXPECT_THAT(ops, testing::Contains("Unique"));
  EXPECT_THAT(ops, testing::Contains("ResourceSparseApplyMomentum"));
  EXPECT_THAT(ops, testing::Not(testing::Contains("ResourceApplyMomentum")));
}

// Each number of distinct rows has a plan of its own behind Unique.
TEST(SparseUpdates, BatchesMayNameAnyNumberOfRows) {
  Graph g;
  Variable p = get_variable(g, "p", {40, 1}, {.initializer = zeros_initializer()});
  Tensor ids = placeholder(g, DType::kInt32, {80}, "ids");
  MomentumOptimizer opt(1.0, 0.0);
  Node& n = opt.minimize(reduce_sum(embedding_lookup(p, ids)));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  std::vector<float> want(40);
  for (int k = 1; k <= 40; ++k) {
    std::vector<int32_t> rows;
    for (int i = 0; i < 80; ++i) rows.push_back(i * 7 % k);
    for (int32_t r : rows) want[static_cast<size_t>(r)] -= 1;
    s.run({}, {{ids, Array::from<int32_t>({80}, std::span<const int32_t>(rows))}}, {&n});
  }
  EXPECT_EQ(floats(s.run({p.snapshot()})[0]), want);
}

TEST(SparseUpdates, AnIndexThatIsNoRowIsRefused) {
  Graph g;
  Variable p = get_variable(g, "p", {3, 1}, {.initializer = ones_initializer()});
  const Tensor values = constant(g, std::vector<float>{1}, {1, 1}),
               rows = constant(g, std::vector<int32_t>{3});
  AdagradOptimizer opt(0.1);
  Node& n = opt.apply_gradients(
      {{GradValue(graph::IndexedSlices{values, rows, constant(g, std::vector<int32_t>{3, 1})}), p}});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_THAT(error_of([&] { s.run({}, {}, {&n}); }),
              HasSubstr("Index 3 at offset 0 in indices is out of range"));
  EXPECT_THAT(floats(s.run({p.snapshot()})[0]), ElementsAre(1, 1, 1));
}

TEST(Constraints, PutTheVariableBackAfterItsUpdate) {
  Graph g;
  Variable w = get_variable(g, "w", {2}, {.initializer = ones_initializer()});
  set_constraint(w, [](const Tensor& x) { return maximum(x, 0.0); });
  GradientDescentOptimizer opt(1.0);
  Node& n = opt.apply_gradients({{GradValue(constant(g, std::vector<float>{3, 0.25f}).output()), w}});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {}, {&n});
  EXPECT_THAT(floats(s.run({w.snapshot()})[0]), ElementsAre(0, 0.75f));
}

TEST(Constraints, AreRefusedForSparseGradients) {
  Graph g;
  Variable p = get_variable(g, "p", {3, 1});
  set_constraint(p, [](const Tensor& x) { return x; });
  AdagradOptimizer opt(0.1);
  EXPECT_THAT(error_of([&] { opt.minimize(reduce_sum(gather(p, constant(g, std::vector<int32_t>{1})))); }),
              HasSubstr("Cannot use a constraint function on a sparse variable."));
}

TEST(OptimizerArguments, AreCheckedWithTensorFlowsWords) {
  EXPECT_THAT(error_of([] { AdagradOptimizer o(0.1, {.initial_accumulator_value = 0}); }),
              HasSubstr("initial_accumulator_value must be positive: 0"));
  EXPECT_THAT(error_of([] { ProximalAdagradOptimizer o(0.1, {.initial_accumulator_value = -1}); }),
              HasSubstr("initial_accumulator_value must be positive: -1"));
  EXPECT_THAT(error_of([] { FtrlOptimizer o(0.1, {.learning_rate_power = 0.5}); }),
              HasSubstr("learning_rate_power 0.5 needs to be negative or zero"));
  EXPECT_THAT(error_of([] { FtrlOptimizer o(0.1, {.l1_regularization_strength = -0.5}); }),
              HasSubstr("l1_regularization_strength -0.5 needs to be positive or zero"));
  EXPECT_THAT(error_of([] { AdagradDAOptimizer o(0.1, Variable()); }), HasSubstr("needs the global step"));
}

}  // namespace
}  // namespace sluice::dsl::train
