#include "dsl/variable.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

class VariableTest : public ::testing::Test {
 protected:
  Graph g;
  std::vector<std::string> names(const char* key) {
    std::vector<std::string> out;
    for (const Variable& v : get_variables(g, key)) out.push_back(v.name());
    return out;
  }
};

TEST_F(VariableTest, AResourceVariableHasTensorFlowsNodes) {
  get_variable(g, "v", {2}, {.initializer = zeros_initializer()});
  EXPECT_THAT(nodes_under(g, "v"), ElementsAre("v/Initializer/zeros Const()", "v VarHandleOp()",
                                               "v/IsInitialized/VarIsInitializedOp VarIsInitializedOp(v)",
                                               "v/Assign AssignVariableOp(v, v/Initializer/zeros)",
                                               "v/Read/ReadVariableOp ReadVariableOp(v)"));
  EXPECT_THAT(g.node("v/Initializer/zeros").attr<std::vector<std::string>>("_class"), ElementsAre("loc:@v"));
  EXPECT_EQ(g.node("v").attr<std::string>("shared_name"), "v");
  EXPECT_THAT(names(graph::keys::kGlobalVariables), ElementsAre("v"));
  EXPECT_THAT(names(graph::keys::kTrainableVariables), ElementsAre("v"));
}

TEST_F(VariableTest, ARefVariableForThoseWhoAsk) {
  get_variable(g, "v", {2}, {.initializer = zeros_initializer(), .use_resource = false});
  EXPECT_THAT(nodes_under(g, "v"),
              ElementsAre("v/Initializer/zeros Const()", "v VariableV2()",
                          "v/Assign Assign(v, v/Initializer/zeros)", "v/read Identity(v)"));
}

TEST_F(VariableTest, DefaultInitializerIsGlorotWithTensorFlowsLimits) {
  get_variable(g, "v", {2, 3});
  EXPECT_FLOAT_EQ(g.node("v/Initializer/random_uniform/max").attr<Literal>("value").as<float>()[0],
                  1.0954452f);
  EXPECT_EQ(g.node("v/Initializer/random_uniform").op(), "AddV2");
}

TEST_F(VariableTest, AReadGoesIntoTheOpsScope) {
  Variable v = get_variable(g, "v", {3, 2});
  Tensor x = placeholder(g, DType::kFloat, {2, 3}, "x");
  matmul(x, v);
  v* reshape(x, std::vector<int64_t>{3, 2});
  EXPECT_EQ(g.node("MatMul").input(1).node->name(), "MatMul/ReadVariableOp");
  EXPECT_EQ(g.node("mul").input(0).node->name(), "ReadVariableOp");
}

TEST_F(VariableTest, InitializersFollowTensorFlow) {
  auto scale = [&](const char* name, const char* node, Initializer i, Dims shape) {
    get_variable(g, name, shape, {.initializer = std::move(i)});
    return g.node(cat(name, "/Initializer/", node)).attr<Literal>("value").as<float>()[0];
  };
  // fan_in 18; the cut-off normal needs a wider one to have variance 2/18.
  EXPECT_FLOAT_EQ(scale("he", "truncated_normal/stddev", he_normal_initializer(), {3, 3, 2, 4}),
                  std::sqrt(2.0f / 18) / 0.87962566f);
  EXPECT_FLOAT_EQ(scale("hu", "random_uniform/max", he_uniform_initializer(), {8, 4}), std::sqrt(6.0f / 8));
  VarianceScaling plain{.distribution = FanDistribution::kUntruncatedNormal};
  EXPECT_FLOAT_EQ(scale("vs", "random_normal/stddev", variance_scaling_initializer(plain), {4, 9}), 0.5f);
  EXPECT_EQ(compute_fans({}), (std::pair<double, double>(1, 1)));
  EXPECT_EQ(compute_fans({7}), (std::pair<double, double>(7, 7)));
  EXPECT_EQ(compute_fans({5, 5, 3, 8}), (std::pair<double, double>(75, 200)));
}

TEST_F(VariableTest, ScopesPrefixVariablesWhateverTheNameScopes) {
  NameScope names(g, "tower");
  VariableScope s(g, "s");
  VariableScope t(g, "t");
  Variable v = get_variable(g, "w", {2});
  EXPECT_EQ(v.name(), "s/t/w");
  EXPECT_EQ(identity(v).node().name(), "tower/s/t/Identity");
}

TEST_F(VariableTest, ReuseRulesAndErrors) {
  {
    VariableScope s(g, "s");
    get_variable(g, "w", {2});
    EXPECT_THAT(error_of([&] { get_variable(g, "w", {2}); }),
                AllOf(HasSubstr("Variable s/w already exists, disallowed. Did you mean to set reuse=True or "
                                "reuse=tf.AUTO_REUSE in VarScope? Originally defined at: "),
                      HasSubstr("variable_test.cpp")));
  }
  VariableScope s(g, "s", {.reuse = Reuse::kTrue});
  EXPECT_EQ(get_variable(g, "w", {2}).name(), "s/w");
  EXPECT_EQ(identity(get_variable(g, "w", {2})).node().name(), "s_1/Identity");
  EXPECT_THAT(error_of([&] { get_variable(g, "none", {2}); }),
              HasSubstr("Variable s/none does not exist, or was not created with tf.get_variable()."));
  EXPECT_THAT(error_of([&] { get_variable(g, "w", {3}); }),
              HasSubstr("Trying to share variable s/w, but specified shape [3] and found shape [2]."));
  EXPECT_THAT(error_of([&] { get_variable(g, "w", {2}, {.dtype = DType::kDouble}); }),
              HasSubstr("but specified dtype double and found dtype float"));
}

TEST_F(VariableTest, AutoReuseMakesOnceThenShares) {
  for (int i = 0; i < 2; ++i) {
    VariableScope s(g, "s", {.reuse = Reuse::kAuto});
    get_variable(g, "w", {2});
  }
  EXPECT_THAT(names(graph::keys::kGlobalVariables), ElementsAre("s/w"));
}

TEST_F(VariableTest, DefaultScopeNamesAreMadeUnique) {
  for (int i = 0; i < 2; ++i) {
    VariableScope s(g, VariableScope::Default{"conv"});
    get_variable(g, "w", {1});
  }
  EXPECT_THAT(names(graph::keys::kGlobalVariables), ElementsAre("conv/w", "conv_1/w"));
}

TEST_F(VariableTest, RegularizersRunOnce) {  // case K01
  VariableOptions o{.initializer = constant_initializer(2.0), .regularizer = l2_regularizer(0.5)};
  for (int i = 0; i < 2; ++i) {
    VariableScope s(g, "s", {.reuse = Reuse::kAuto});
    get_variable(g, "w", {1, 1}, o);
  }
  EXPECT_EQ(losses::get_regularization_losses(g).size(), 1u);
  Tensor total = losses::get_regularization_loss(g);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_EQ(floats(s.run({total})[0])[0], 1.0f);
  EXPECT_EQ(losses::get_regularization_losses(g)[0].node().name(), "s/w/Regularizer/l2_regularizer");
}

TEST_F(VariableTest, UpdatesReturnTheValueAfterwards) {
  Variable v = get_variable(g, "v", {2}, {.initializer = constant_initializer(1.0)});
  Tensor next = assign_add(v, constant(g, std::vector<float>{1, 2}));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_THAT(floats(s.run({next})[0]), ElementsAre(2, 3));
  EXPECT_THAT(floats(s.run({next})[0]), ElementsAre(3, 5));
  EXPECT_THAT(error_of([&] {
                assign(v, constant(g, std::vector<float>{1, 2, 3}));
              }),
              HasSubstr("shapes must be equal"));
  EXPECT_THAT(error_of([&] { assign(v, constant(g, std::vector<double>{1, 2})); }), HasSubstr("double"));
}

TEST_F(VariableTest, InitialisersStandOutsideControlDependencies) {
  Node& n = no_op(g, "n");
  ControlDependencies deps(g, {&n});
  Variable v = get_variable(g, "v", {1});
  EXPECT_TRUE(v.initializer().control_inputs().empty());
}

TEST_F(VariableTest, MovingAverageFormula) {
  Variable v = get_variable(g, "m", {1}, {.initializer = zeros_initializer(), .trainable = false});
  Node& update = assign_moving_average(v, constant(g, std::vector<float>{10}), 0.9);
  EXPECT_EQ(update.name(), "AssignMovingAvg/AssignSubVariableOp");
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {}, {&update});
  EXPECT_FLOAT_EQ(floats(s.run({v.snapshot()})[0])[0], 1.0f);
  s.run({}, {}, {&update});
  EXPECT_FLOAT_EQ(floats(s.run({v.snapshot()})[0])[0], 1.9f);
}

TEST_F(VariableTest, InitialValuesMayReadOtherVariables) {
  for (const bool resource : {true, false}) {
    Graph h;
    Variable a =
        get_variable(h, "a", {2}, {.initializer = random_normal_initializer(), .use_resource = resource});
    Variable b = make_variable(h, multiply(a.read_value(), 2.0), "b", {.use_resource = resource});
    Variable c = make_variable(h, add(a.read_value(), b.read_value()), "c", {.use_resource = resource});
    Node& init = global_variables_initializer(h);
    Session s(h);
    s.run({}, {}, {&init});
    const auto x = floats(s.run({a.snapshot()})[0]), z = floats(s.run({c.snapshot()})[0]);
    EXPECT_FLOAT_EQ(z[0], 3 * x[0]);
    // Initialising one alone sets no other.
    s.run({}, {}, {&assign_op(a, constant(h, std::vector<float>{1, 2}))});
    s.run({}, {}, {&b.initializer()});
    EXPECT_THAT(floats(s.run({a.snapshot()})[0]), ElementsAre(1, 2));
    EXPECT_THAT(floats(s.run({b.snapshot()})[0]), ElementsAre(2, 4));
  }
}

TEST_F(VariableTest, AnUninitialisedReadNamesTheVariable) {
  Variable v = get_variable(g, "v", {1});
  Session s(g);
  EXPECT_THAT(error_of([&] { s.run({v.snapshot()}); }),
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("v")));
}

}  // namespace
}  // namespace sluice::dsl
