// A small network through the real graph, gradients and kernels: what the runtime promises holds there too.

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cmath>

#include "dsl/dsl.h"
#include "runtime/plan/plan.h"

extern std::atomic<int64_t> g_allocations, g_live_allocations;  // count_new.cpp

namespace sluice::dsl {
namespace {

struct Net {
  Graph g;
  Tensor images, labels, loss;
  Node* init = nullptr;
  Node* step = nullptr;
  std::vector<Variable> weights;

  explicit Net(int batch) {
    g.set_seed(7);
    images = placeholder(g, DType::kFloat, {batch, 12, 12, 2}, "images");
    labels = placeholder(g, DType::kInt32, {batch}, "labels");
    Tensor x = layers::conv2d(images, 4, {3, 3}, {.padding = "SAME", .use_bias = false, .name = "conv1"});
    x = relu(layers::batch_normalization(x, {.training = true, .momentum = 0.9, .name = "bn1"}));
    x = layers::max_pooling2d(x, {2, 2}, {2, 2});
    x = layers::conv2d(x, 8, {3, 3}, {.activation = layers::relu_activation, .name = "conv2"});
    x = layers::dense(layers::flatten(x), 5, {.name = "dense"});
    loss = losses::sparse_softmax_cross_entropy(labels, x);
    weights = trainable_variables(g);
    std::vector<Output> handles;
    for (const Variable& v : weights) handles.push_back(v.handle());
    const std::vector<graph::GradValue> grads = gradients({loss}, handles);
    std::vector<Node*> updates;
    for (size_t i = 0; i < weights.size(); ++i) {
      Variable slot = make_variable(g, zeros(g, weights[i].shape().dims()), "momentum", {.trainable = false});
      updates.push_back(&g.add({.op = "ResourceApplyMomentum",
                                .inputs = {weights[i].handle(), slot.handle(), constant(g, 0.02),
                                           grads[i].dense, constant(g, 0.9)}}));
    }
    for (const auto& e : g.collections().elements(graph::keys::kUpdateOps)) updates.push_back(e.node);
    step = &g.add({.op = "NoOp", .name = "train", .control_inputs = updates});
    init = &global_variables_initializer(g);
  }

  std::vector<Feed> feeds() const {
    const int64_t n = images.shape().dim(0);
    Array x(DType::kFloat, {n, 12, 12, 2}), y(DType::kInt32, {n});
    for (size_t i = 0; i < x.as<float>().size(); ++i)
      x.as<float>()[i] = std::sin(static_cast<float>(i % 288) * 0.07f * static_cast<float>(1 + i / 288 % 5));
    for (size_t i = 0; i < y.as<int32_t>().size(); ++i) y.as<int32_t>()[i] = static_cast<int32_t>(i % 5);
    return {{images, x}, {labels, y}};
  }
};

std::vector<double> losses_of(Net& net, runtime::PlanMode mode, int steps, int threads = 2) {
  SessionOptions o;
  o.mode = mode;
  o.intra_op_threads = threads;
  Session s(net.g, o);
  s.run({}, {}, {net.init});
  std::vector<double> r;
  for (int k = 0; k < steps; ++k) r.push_back(s.run({net.loss}, net.feeds(), {net.step})[0].item<double>());
  return r;
}

TEST(Training, LossFallsAlikeInEveryMode) {
  Net net(10);
  const std::vector<double> fast = losses_of(net, runtime::PlanMode::kOptimized, 20);
  const std::vector<double> reference = losses_of(net, runtime::PlanMode::kReference, 20);
  const std::vector<double> wide = losses_of(net, runtime::PlanMode::kReference64, 20);
  EXPECT_LT(fast.back(), 0.7 * fast.front());
  for (size_t k = 0; k < fast.size(); ++k) {
    EXPECT_NEAR(fast[k], wide[k], 1e-3 * std::abs(wide[k])) << k;
    EXPECT_NEAR(reference[k], wide[k], 1e-3 * std::abs(wide[k])) << k;
  }
}

TEST(Training, SameBitsRunAfterRun) {
  Net net(4);
  EXPECT_EQ(losses_of(net, runtime::PlanMode::kOptimized, 5),
            losses_of(net, runtime::PlanMode::kOptimized, 5));
}

TEST(Training, OneStepUpdatesEveryVariable) {
  Net net(4);
  Session s(net.g, {.intra_op_threads = 2});
  s.run({}, {}, {net.init});
  RunOptions options;
  options.trace_level = runtime::TraceLevel::kSoftware;
  RunMetadata meta;
  s.run({net.loss}, net.feeds(), {net.step}, options, &meta);
  std::vector<std::string> nodes;
  for (const runtime::StepStats& step : meta.steps)
    if (step.op == "_Update") nodes = step.nodes;
  // The trace names the author's nodes.
  int updates = 0;
  for (const Node* n : net.step->control_inputs())
    if (n->op() == "ResourceApplyMomentum") {
      ++updates;
      EXPECT_EQ(std::count(nodes.begin(), nodes.end(), n->name()), 1) << n->name();
    }
  EXPECT_EQ(updates, static_cast<int>(net.weights.size()));
}

TEST(Training, SteadyStepsAllocateNothing) {
  Net net(4);
  Session s(net.g, {.intra_op_threads = 2});
  s.run({}, {}, {net.init});
  const std::vector<Output> fetches{net.loss};
  const std::vector<Feed> feeds = net.feeds();
  const std::vector<Node*> targets{net.step};
  std::vector<Array> results;
  for (int k = 0; k < 2; ++k) s.run_into(results, fetches, feeds, targets);
  const int64_t before = g_allocations.load(), buffers = runtime::allocation_count();
  for (int k = 0; k < 10; ++k) s.run_into(results, fetches, feeds, targets);
  EXPECT_EQ(g_allocations.load(), before);
  EXPECT_EQ(runtime::allocation_count(), buffers);
}

// Nothing is kept from run to run, by us or by a library: as many objects are alive after thousands of runs.
TEST(Training, MemoryIsFlatOverManyRuns) {
  Net net(2);
  Session s(net.g, {.intra_op_threads = 1});
  s.run({}, {}, {net.init});
  const std::vector<Output> fetches{net.loss};
  const std::vector<Feed> feeds = net.feeds();
  const std::vector<Node*> targets{net.step};
  std::vector<Array> results;
  auto run = [&](int times) {
    for (int k = 0; k < times; ++k) s.run_into(results, fetches, feeds, targets);
    for (int k = 0; k < times / 10; ++k) s.run(fetches, feeds, targets);
  };
  run(50);
  const int64_t alive = g_live_allocations.load();
  const size_t heap = mallinfo2().uordblks;  // what C code took as well; 0 under AddressSanitizer
  run(2000);
  EXPECT_EQ(g_live_allocations.load(), alive);
  EXPECT_LE(mallinfo2().uordblks, heap + (size_t{16} << 10));
}

TEST(Training, WeightsAreUpdatedInPlace) {
  Net net(4);
  Session s(net.g, {.intra_op_threads = 2});
  s.run({}, {}, {net.init});
  std::vector<const void*> where;
  for (const Variable& v : net.weights)
    where.push_back(s.resources().find_variable("", v.name())->read()->buffer.data());
  for (int k = 0; k < 3; ++k) s.run({net.loss}, net.feeds(), {net.step});
  for (size_t i = 0; i < where.size(); ++i)
    EXPECT_EQ(s.resources().find_variable("", net.weights[i].name())->read()->buffer.data(), where[i])
        << net.weights[i].name();
}

}  // namespace
}  // namespace sluice::dsl
