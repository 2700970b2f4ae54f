// The fusing passes: the plan holds what the pictures in runtime/plan promise, and its numbers are those of
// the reference mode.

#include <gtest/gtest.h>

#include <map>

#include "graph/collections.h"
#include "graph/scopes.h"
#include "kernel_runner.h"
#include "passes/gradients.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace sluice::test {
namespace {

using graph::Output;
constexpr DType F = DType::kFloat;

struct Net {
  graph::Graph g;
  uint32_t seed = 10;
  std::vector<graph::Node*> initializers;
  std::vector<Output> handles;

  Output op(const std::string& op, std::vector<Output> in, graph::AttrMap attrs = {}, int index = 0) {
    return g.add({.op = op, .inputs = std::move(in), .attrs = std::move(attrs)}).output(index);
  }
  Output constant(const Array& a) {
    return op("Const", {}, {{"dtype", a.dtype()}, {"value", a.to_literal()}});
  }
  Output variable(Dims dims, float scale, float mean = 0) {
    graph::Node& v =
        g.add({.op = "VarHandleOp",
               .name = "w",
               .attrs = {{"dtype", F}, {"shape", graph::Shape(dims)}, {"shared_name", cat("w", seed)}}});
    initializers.push_back(&g.add({.op = "AssignVariableOp",
                                   .inputs = {v.output(), constant(random_array(dims, ++seed, scale, mean))},
                                   .attrs = {{"dtype", F}}}));
    handles.push_back(v.output());
    return v.output();
  }
  Output read(Output handle) { return op("ReadVariableOp", {handle}, {{"dtype", F}}); }
  Output conv(Output x, int64_t in, int64_t out, int64_t k = 3) {
    return op("Conv2D", {x, read(variable({k, k, in, out}, 0.3f))},
              {{"T", F}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}});
  }
  graph::Node& batch_norm(Output x, int64_t c, bool training) {
    Output scale = read(variable({c}, 0.1f, 1.f)), offset = read(variable({c}, 0.1f));
    Output mean = training ? constant(Array(F, {0})) : read(variable({c}, 0.1f));
    Output variance = training ? constant(Array(F, {0})) : read(variable({c}, 0.01f, 1.f));
    return g.add({.op = "FusedBatchNormV3",
                  .inputs = {x, scale, offset, mean, variance},
                  .attrs = {{"T", F}, {"U", F}, {"epsilon", 1e-3f}, {"is_training", training}}});
  }
  // conv → bn → relu → conv → bn → add → relu
  Output block(Output x, int64_t c, bool training) {
    Output y = op("Relu", {batch_norm(conv(x, c, c), c, training).output(0)});
    y = batch_norm(conv(y, c, c), c, training).output(0);
    return op("Relu", {op("AddV2", {y, x})});
  }
};

struct Ran {
  std::vector<Array> values;
  std::map<std::string, int> ops;
};

Ran run(Net& net, const std::vector<Output>& fetches, const std::vector<graph::Node*>& targets,
        runtime::PlanMode mode, bool relaxed = false, int threads = 2) {
  runtime::SessionOptions options;
  options.mode = mode;
  options.relaxed_nan = relaxed;
  options.intra_op_threads = threads;
  runtime::Session s(net.g, options);
  if (!net.initializers.empty()) s.run({}, {}, net.initializers);
  Ran r;
  for (const auto& step : s.plan(fetches, {}, targets)->steps()) ++r.ops[step.op];
  r.values = s.run(fetches, {}, targets);
  if (!targets.empty()) {  // two steps, then the variables
    s.run(fetches, {}, targets);
    std::vector<Output> reads;
    for (Output h : net.handles) reads.push_back(net.read(h));
    for (Array& a : s.run(reads)) r.values.push_back(a);
  }
  return r;
}

void expect_same(const Ran& got, const Ran& want, float tolerance) {
  ASSERT_EQ(got.values.size(), want.values.size());
  for (size_t i = 0; i < got.values.size(); ++i)
    expect_close(got.values[i], want.values[i], tolerance, cat("value ", i));
}

TEST(Fusion, InferenceBatchNormMovesIntoConvolutions) {
  Net net;
  Output x = net.constant(random_array({2, 8, 8, 16}, 1));
  Output y = net.block(net.block(x, 16, false), 16, false);
  Ran want = run(net, {y}, {}, runtime::PlanMode::kReference),
      got = run(net, {y}, {}, runtime::PlanMode::kOptimized);
  expect_same(got, want, 1e-5f);
  EXPECT_EQ(got.ops["FusedBatchNormV3"], 0);
  EXPECT_EQ(got.ops["_FusedConv2D"], 4);
  EXPECT_EQ(got.ops["_Region"], 0);
  Ran relaxed = run(net, {y}, {}, runtime::PlanMode::kOptimized, true);
  expect_same(relaxed, want, 1e-5f);
  EXPECT_EQ(relaxed.ops["_Region"], 0);
}

TEST(Fusion, TrainingStepIsStatisticsRegionsAndUpdates) {
  Net net;
  Output x = net.constant(random_array({4, 8, 8, 16}, 1));
  Output y = net.block(net.block(x, 16, true), 16, true);
  Output loss = net.op("L2Loss", {y}, {{"T", F}});
  std::vector<Output> handles = net.handles;
  for (Output h : handles)
    loss = net.op("AddV2", {loss, net.op("Mul", {net.op("L2Loss", {net.read(h)}, {{"T", F}}),
                                                 net.constant(Array::scalar(0.01f))})});
  std::vector<graph::GradValue> grads = passes::gradients({loss}, handles);
  std::vector<graph::Node*> targets;
  Output rate = net.constant(Array::scalar(1e-4f)), momentum = net.constant(Array::scalar(0.9f));
  for (size_t i = 0; i < handles.size(); ++i) {
    Output slot = net.variable(net.g.node(handles[i].node->name()).attr<graph::Shape>("shape").dims(), 0.f);
    targets.push_back(&net.g.add({.op = "ResourceApplyMomentum",
                                  .inputs = {handles[i], slot, rate, grads[i].dense, momentum},
                                  .attrs = {{"T", F}}}));
  }
  Ran want = run(net, {loss}, targets, runtime::PlanMode::kReference);
  Ran got = run(net, {loss}, targets, runtime::PlanMode::kOptimized);
  expect_same(got, want, 2e-4f);
  EXPECT_EQ(got.ops["_Update"], 1) << "all variables in one pass";
  EXPECT_EQ(got.ops["_BatchNormStats"], 4);
  EXPECT_EQ(got.ops["FusedBatchNormV3"] + got.ops["FusedBatchNormGradV3"], 0);
  EXPECT_EQ(got.ops["Relu"] + got.ops["ReluGrad"] + got.ops["AddN"] + got.ops["_Reorder"], 0);
  // Forward 4; backward two a batch norm (sums with the gradient of the ReLU before it, and dx).
  EXPECT_LE(got.ops["_Region"], 4 + 8 + 3) << "more passes over memory than the pictures show";
  Ran one = run(net, {loss}, targets, runtime::PlanMode::kOptimized, false, 1);
  expect_same(one, want, 2e-4f);
}

TEST(Fusion, SelectWithAVectorConditionChoosesRows) {
  Net net;
  Output a = net.constant(random_array({16, 16}, 1)), b = net.op("Neg", {a});
  Output rows = net.op("Greater", {net.constant(random_array({16}, 2)), net.constant(Array::zeros(F, {16}))});
  Output y = net.op("Tanh", {net.op("Select", {rows, a, b})});
  Ran want = run(net, {y}, {}, runtime::PlanMode::kReference),
      got = run(net, {y}, {}, runtime::PlanMode::kOptimized);
  expect_same(got, want, 1e-6f);
}

TEST(Fusion, ReductionsAndTheirReadersStayApart) {
  Net net;
  Output x = net.constant(random_array({64, 32}, 1));
  Output axes = net.constant(Array::from<int32_t>({1}, {0}));
  Output e = net.op("Exp", {x});
  Output sum = net.op("Sum", {e, axes}, {{"T", F}, {"Tidx", DType::kInt32}, {"keep_dims", true}});
  Output y = net.op("RealDiv", {e, sum}),
         z = net.op("Mul", {y, net.op("Greater", {y, x}).node ? net.op("Tanh", {y}) : y});
  Ran want = run(net, {z, sum}, {}, runtime::PlanMode::kReference),
      got = run(net, {z, sum}, {}, runtime::PlanMode::kOptimized);
  expect_same(got, want, 1e-5f);
}

}  // namespace
}  // namespace sluice::test
