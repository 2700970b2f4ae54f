// Cases that users of other systems reported (cases.md), told through the DSL: values and gradients.
#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/check_gradient.h"
#include "graph/graphdef.h"
#include "graph/verify.h"
#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Cases : public ::testing::Test {
 protected:
  Graph g;
  Tensor in(Shape s, const char* name = "x") { return placeholder(g, DType::kFloat, std::move(s), name); }
  Output grad(const Tensor& y, const Tensor& x) { return dense(gradients({reduce_sum(y)}, {x})[0]); }
  Array shaped(std::vector<float> v, Dims d) { return vec(std::move(v)).reshaped(std::move(d)); }
};

TEST_F(Cases, G10AveragePoolDividesByTheCellsInside) {
  Tensor x = in({1, 3, 3, 1});
  Tensor y = avg_pool(x, {2, 2}, {2, 2}, {.padding = "SAME"});
  Output d = grad(y, x);
  std::vector<Feed> feeds{{x, shaped({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(3, 4.5f, 7.5f, 9));
  EXPECT_THAT(run(d, feeds), ElementsAre(.25f, .25f, .5f, .25f, .25f, .5f, .5f, .5f, 1));
}

TEST_F(Cases, G11PaddingNeverWinsAMaxPool) {
  Tensor x = in({1, 3, 3, 1});
  Tensor y = max_pool(x, {2, 2}, {2, 2}, {.padding = "SAME"});
  Output d = grad(y, x);
  std::vector<Feed> feeds{{x, shaped({-5, -6, -7, -8, -9, -1, -2, -3, -4}, {1, 3, 3, 1})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(-5, -1, -2, -4));
  EXPECT_THAT(run(d, feeds), ElementsAre(1, 0, 0, 0, 0, 1, 1, 0, 1));
}

TEST_F(Cases, G14SamePaddingPutsTheOddCellAfter) {
  Tensor x = in({1, 4, 1, 1}), k = in({3, 1, 1, 1}, "k");
  Tensor y = conv2d(x, k, {.strides = {2, 1}});
  auto d = gradients({reduce_sum(y)}, {x, k});
  std::vector<Feed> feeds{{x, shaped({1, 2, 3, 4}, {1, 4, 1, 1})}, {k, shaped({1, 10, 100}, {3, 1, 1, 1})}};
  EXPECT_THAT(run(y, feeds), ElementsAre(321, 43));
  EXPECT_THAT(run(dense(d[0]), feeds), ElementsAre(1, 10, 101, 10));
  EXPECT_THAT(run(dense(d[1]), feeds), ElementsAre(4, 6, 3));
}

TEST_F(Cases, G16AStrideThatLeavesTheEdgeGivesItNoGradient) {
  Tensor x = in({1, 6, 6, 1});
  Output d = grad(conv2d(x, ones(g, {3, 3, 1, 1}), {.strides = {2, 2}, .padding = "VALID"}), x);
  std::vector<float> v = run(d, {{x, Array::zeros(DType::kFloat, {1, 6, 6, 1})}});
  const float c[6] = {1, 1, 2, 1, 1, 0};
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 6; ++j) EXPECT_EQ(v[6 * i + j], c[i] * c[j]) << i << "," << j;
  }
}

TEST_F(Cases, G19BatchNormThatIsNotFusedKeepsTheBiasedVariance) {
  Tensor v = constant(g, std::vector<float>{2, 4, 6, 8}, {4, 1});
  layers::batch_normalization(v, {.training = true, .momentum = 0.5, .name = "bn"});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  std::vector<Node*> updates;
  for (auto& e : g.collections().elements(graph::keys::kUpdateOps)) updates.push_back(e.node);
  s.run({}, {}, updates);
  EXPECT_THAT(floats(s.run({g.output("bn/moving_variance/Read/ReadVariableOp:0")})[0]),
              ElementsAre(FloatEq(3.0f)));
}

TEST_F(Cases, G20BatchNormGradientsMeetFiniteDifferences) {
  Tensor x = in({3, 2, 1, 2}), gamma = in({2}, "gamma"), beta = in({2}, "beta");
  Tensor y = fused_batch_norm(x, gamma, beta).y;
  const Array xv = shaped({1, 3, 8, -2, .5f, 4, -1, 2, 6, 7, 3, -5}, {3, 2, 1, 2});
  const std::vector<Feed> feeds{{x, xv}, {gamma, vec({2, -.5f})}, {beta, vec({.25f, 1})}};
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Feed& f = feeds[i];
    std::vector<Feed> others = feeds;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const GradientCheck c = check_gradient(y, f.output, f.value, {.feeds = others});
    EXPECT_LT(c.max_error, 1e-6) << f.output.name() << ": " << c.str();
    EXPECT_NE(c.analytic[0], 0.0);
  }
}

TEST_F(Cases, G20BatchNormGradients) {
  Tensor x = in({3, 1, 1, 1}), dy = in({3, 1, 1, 1}, "dy");
  Tensor gamma = constant(g, std::vector<float>{2}), beta = constant(g, std::vector<float>{0});
  BatchNormOutputs bn = fused_batch_norm(x, gamma, beta, {.epsilon = 0});
  GradientOptions o;
  o.grad_ys = {GradValue(dy.output())};
  auto d = gradients({bn.y}, {x, gamma, beta}, o);
  std::vector<Feed> feeds{{x, shaped({1, 3, 8}, {3, 1, 1, 1})}, {dy, shaped({1, 0, 2}, {3, 1, 1, 1})}};
  EXPECT_THAT(run(dense(d[2]), feeds), ElementsAre(FloatEq(3)));
  EXPECT_THAT(run(dense(d[1]), feeds), ElementsAre(FloatNear(1.698416f, 1e-5f)));
  EXPECT_THAT(run(dense(d[0]), feeds), ElementsAre(FloatNear(.391942f, 1e-5f), FloatNear(-.548719f, 1e-5f),
                                                   FloatNear(.156777f, 1e-5f)));
}

TEST_F(Cases, G21ProductGradientsDoNotDivide) {
  Tensor x = in({3});
  Output d = grad(reduce_prod(x), x);
  EXPECT_THAT(run(d, {{x, vec({2, 0, 4})}}), ElementsAre(0, 8, 0));
  EXPECT_THAT(run(d, {{x, vec({0, 0, 4})}}), ElementsAre(0, 0, 0));
}

TEST_F(Cases, G26AParameterOfASigmoidKeepsItsShape) {
  Tensor x = constant(g, std::vector<float>{1, 0, 2, -1}, {2, 2}), beta = in({2}, "beta");
  Output d = grad(x * sigmoid(beta * x), beta);
  EXPECT_THAT(run(d, {{beta, vec({.5f, 2})}}),
              ElementsAre(FloatNear(1.021451f, 1e-5f), FloatNear(0.104994f, 1e-5f)));
}

TEST_F(Cases, G30AVeryDeepGraphIsDumpedReadAndDestroyed) {
  Tensor x = in({}), one = constant(g, 1.0), y = x;
  for (int i = 0; i < 50'000; ++i) y = add(y, one);
  const std::string text = g.str();
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 50'000);
  const std::string bytes = graph::graph_to_bytes(g);
  Graph back;
  graph::graph_from_bytes(back, bytes);
  EXPECT_EQ(graph::graph_to_bytes(back), bytes);
  EXPECT_TRUE(graph::verify(back).empty());
  Session s(back);
  EXPECT_THAT(floats(s.run({back.output(y.output().name())}, {{back.output("x:0"), Array::scalar(0.0f)}})[0]),
              ElementsAre(50'000));
}

TEST_F(Cases, G23AllLogitsMaskedIsNan) {
  Tensor x = constant(g, std::vector<float>{-kInf, -kInf}, {1, 2});
  Tensor loss = sparse_softmax_cross_entropy_with_logits(constant(g, std::vector<int32_t>{0}), x);
  EXPECT_TRUE(std::isnan(run(loss)[0]));
}

TEST_F(Cases, N04ChecksRefuseLoopsByName) {
  Tensor x = in({2}), p = placeholder(g, DType::kBool, {}, "p");
  g.add({.op = "Switch", .name = "cond/Switch", .inputs = {x, p}});
  EXPECT_THAT(error_of([&] { add_check_numerics_ops(g); }),
              AllOf(HasSubstr("is not compatible with TensorFlow control flow operations"),
                    HasSubstr("'cond/Switch'")));
}

TEST_F(Cases, C01AReadHasItsPlaceInTheOrder) {
  Variable v = get_variable(g, "v", {},
                            {.dtype = DType::kInt32, .initializer = zeros_initializer(), .trainable = false});
  Tensor old = v.read_value(), next;
  {
    ControlDependencies after(g, {&old.node()});
    next = assign(v, v.value() + 1);
  }
  Session s(g);
  s.run({}, {}, {&v.initializer()});
  for (int i = 0; i < 100; ++i) {
    auto out = s.run({old, next});
    EXPECT_EQ(out[0].as<int32_t>()[0], i);
    EXPECT_EQ(out[1].as<int32_t>()[0], i + 1);
  }
}

TEST_F(Cases, C04InitialiseThenReadInOneRun) {
  Variable v = get_variable(g, "v", {}, {.initializer = constant_initializer(7)});
  ControlDependencies after(g, {&v.initializer()});
  Tensor r = v.read_value();
  for (int i = 0; i < 50; ++i) EXPECT_THAT(run(r), ElementsAre(7));
}

TEST_F(Cases, C05AnAssignmentMayChangeTheShapeOnlyWhenAsked) {
  Variable v = get_variable(g, "v", {}, {.initializer = zeros_initializer(), .use_resource = false});
  Tensor two = constant(g, std::vector<float>{1, 2}), any = placeholder(g, DType::kFloat, Shape(), "any");
  Node& widen = g.add({.op = "Assign", .inputs = {v.handle(), two}, .attrs = {{"validate_shape", false}}});
  Tensor y;
  {
    ControlDependencies after(g, {&widen});
    y = v.read_value() + 2.0;
  }
  EXPECT_THAT(error_of([&] {
                g.add({.op = "Assign", .name = "strict", .inputs = {v.handle(), two}});
              }),
              AllOf(HasSubstr("'strict'"), HasSubstr("'v'"), HasSubstr("input shapes: [], [2]")));
  Node& strict = g.add({.op = "Assign", .name = "strict", .inputs = {v.handle(), any}});
  Session s(g);
  s.run({}, {}, {&v.initializer()});
  EXPECT_THAT(error_of([&] {
                s.run({}, {{any, vec({1, 2})}}, {&strict});
              }),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("'v'"), HasSubstr("input shapes: [], [2]")));
  for (int i = 0; i < 20; ++i) {
    const Array out = s.run({y})[0];
    EXPECT_EQ(out.dims(), Dims{2});
    EXPECT_THAT(floats(out), ElementsAre(3, 4));
  }
}

TEST_F(Cases, C09ATensorFetchedTwiceRunsOnce) {
  Variable v = get_variable(g, "v", {}, {.initializer = zeros_initializer()});
  Tensor inc = assign_add(v, 1.0), ten = inc * 10.0;
  Session s(g);
  s.run({}, {}, {&v.initializer()});
  auto out = s.run({inc, inc, ten});
  EXPECT_EQ(floats(out[0])[0], 1.0f);
  EXPECT_EQ(floats(out[1])[0], 1.0f);
  EXPECT_EQ(floats(out[2])[0], 10.0f);
  EXPECT_THAT(floats(s.run({v.snapshot()})[0]), ElementsAre(1));
}

TEST_F(Cases, C10RunningASwitchIsRefusedByName) {
  Tensor x = in({2}), p = placeholder(g, DType::kBool, {}, "p");
  Node& branch = g.add({.op = "Switch", .name = "cond/Switch", .inputs = {x, p}});
  const std::vector<Feed> feeds{{x, vec({1, 2})}, {p, Array::scalar(true)}};
  EXPECT_THAT(error_of([&] { run(branch.output(1), feeds); }),
              AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("'cond/Switch'"), HasSubstr("cases_test.cpp")));
}

TEST_F(Cases, C12ConcurrentGradientStepsLoseNoUpdate) {
  Variable v = get_variable(g, "v", {}, {.initializer = zeros_initializer()});
  train::GradientDescentOptimizer opt(1.0, /*use_locking=*/true);
  Node& step = opt.apply_gradients({{GradValue(constant(g, -1.0).output()), v}});
  Session s(g);
  s.run({}, {}, {&v.initializer()});
  const auto work = [&] {
    for (int i = 0; i < 10'000; ++i) s.run({}, {}, {&step});
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  EXPECT_THAT(floats(s.run({v.snapshot()})[0]), ElementsAre(20'000));
}

// What a builder refuses names node, shapes and the author's line, and leaves the graph as it was.
TEST(BadInput, AWrongShapeShowsTheAuthorsLine) {
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {2, 3}, "x"), k = placeholder(g, DType::kFloat, {3, 3, 4, 8}, "k");
  Tensor image = placeholder(g, DType::kFloat, {1, 8, 8, 3}, "image");
  const int nodes = g.num_nodes();
  const auto expect_refusal = [&](const std::string& e, int line, const char* part) {
    EXPECT_THAT(
        e, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr(cat("cases_test.cpp:", line)), HasSubstr(part)));
  };
  expect_refusal(error_of([&] { matmul(x, x); }), __LINE__, "must be equal, but are 3 and 2");
  expect_refusal(error_of([&] { conv2d(image, k); }), __LINE__, "3");
  expect_refusal(error_of([&] { x + image; }), __LINE__, "[2,3]");
  EXPECT_EQ(g.num_nodes(), nodes);
  expect_refusal(error_of([&] { concat({x, image}, 0); }), __LINE__, "rank");
}

}  // namespace
}  // namespace sluice::dsl
