// Optimizer updates in a plan: those of one formula are one step over all variables, with the bits that one
// step a variable gives, in the author's order, within the memory the pass promises.

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/graph.h"
#include "kernel_runner.h"
#include "passes/gradients.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace sluice::test {
namespace {

using graph::Node;
using graph::Output;
constexpr DType F = DType::kFloat;

struct Optimizer {
  const char* op;
  int slots, scalars;
  int grad;  // input number of the gradient
};
constexpr Optimizer kOptimizers[] = {{"ApplyGradientDescent", 0, 1, 2},
                                     {"ApplyMomentum", 1, 2, 3},
                                     {"ApplyRMSProp", 2, 4, 7},
                                     {"ApplyAdam", 2, 6, 9}};

struct Model {
  graph::Graph g;
  bool ref = false;
  uint32_t seed = 1;
  std::vector<Output> handles;
  std::vector<Node*> initializers, updates;

  Output constant(const Array& a) {
    return g.add({.op = "Const", .attrs = {{"dtype", a.dtype()}, {"value", a.to_literal()}}}).output();
  }
  Output scalar(float v) { return constant(Array::scalar(v)); }
  Output op(const char* name, std::vector<Output> in, std::vector<Node*> after = {}) {
    return g.add({.op = name, .inputs = std::move(in), .control_inputs = std::move(after)}).output();
  }
  Output variable(Dims dims, float scale, float mean = 0) {
    const std::string name = cat("w", handles.size());
    Output v = g.add({.op = ref ? "VariableV2" : "VarHandleOp",
                      .name = name,
                      .attrs = {{"dtype", F}, {"shape", graph::Shape(dims)}, {"shared_name", name}}})
                   .output();
    initializers.push_back(&g.add({.op = ref ? "Assign" : "AssignVariableOp",
                                   .inputs = {v, constant(random_array(dims, ++seed, scale, mean))}}));
    handles.push_back(v);
    return v;
  }
  Output read(Output handle, std::vector<Node*> after = {}) {
    if (ref) return op("Identity", {handle}, std::move(after));
    return g
        .add({.op = "ReadVariableOp",
              .inputs = {handle},
              .attrs = {{"dtype", F}},
              .control_inputs = std::move(after)})
        .output();
  }
  std::vector<Output> hypers(const Optimizer& o, float rate) {
    const float values[] = {rate, 0.9f, 0.8f, 0.9f, 0.95f, 1e-3f};
    const float adam[] = {0.9f, 0.99f, rate, 0.9f, 0.99f, 1e-3f};
    std::vector<Output> h;
    for (int i = 0; i < o.scalars; ++i) h.push_back(scalar((o.scalars == 6 ? adam : values)[i]));
    return h;
  }
  Node* update(const Optimizer& o, Output w, const std::vector<Output>& hypers, Output grad, Dims dims,
               std::vector<Node*> after = {}) {
    std::vector<Output> in{w};
    for (int s = 0; s < o.slots; ++s) in.push_back(variable(dims, 0.1f, 1.f));
    in.insert(in.end(), hypers.begin(), hypers.end());
    in.insert(in.begin() + o.grad, grad);
    updates.push_back(&g.add({.op = cat(ref ? "" : "Resource", o.op),
                              .name = cat("train", updates.size()),
                              .inputs = in,
                              .control_inputs = std::move(after)}));
    return updates.back();
  }
  std::vector<Output> reads() {
    std::vector<Output> r;
    for (Output h : handles) r.push_back(read(h));
    return r;
  }
};

struct Ran {
  std::vector<Array> values;
  std::vector<std::vector<std::string>> steps;  // nodes of each "_Update"
  size_t arena = 0;
};

Ran train(Model& m, const std::vector<Output>& reads, bool grouped, int threads = 2,
          runtime::PlanMode mode = runtime::PlanMode::kOptimized) {
  runtime::SessionOptions options;
  options.mode = mode;
  options.intra_op_threads = threads;
  if (!grouped) options.disabled_passes = {"group_updates"};
  runtime::Session s(m.g, options);
  s.run({}, {}, m.initializers);
  Ran r;
  const auto plan = s.plan({}, {}, m.updates);
  for (const auto& step : plan->steps())
    if (step.op == "_Update") r.steps.push_back(step.nodes);
  r.arena = plan->arena_bytes();
  for (int k = 0; k < 3; ++k) s.run({}, {}, m.updates);
  r.values = s.run(reads);
  return r;
}

void expect_equal_bits(const Ran& a, const Ran& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i)
    EXPECT_EQ(std::memcmp(a.values[i].data(), b.values[i].data(), a.values[i].bytes()), 0) << "value " << i;
}

// More variables than are locked at a time, from 2 elements to several chunks.
void many_variables(Model& m, const Optimizer& o) {
  const std::vector<Output> h = m.hypers(o, 0.01f);
  for (int k = 0; k < 67; ++k) {
    const Dims dims{k % 9 == 8 ? 70'003 : 2 + 13 * k};
    Output w = m.variable(dims, 0.5f);
    // The gradient holds weight decay and something of the variable's own.
    Output g = m.op("AddN", {m.op("Mul", {m.read(w), m.scalar(1e-3f)}),
                             m.constant(random_array(dims, 1000 + static_cast<uint32_t>(k), 1.f))});
    m.update(o, w, h, g, dims);
  }
}

class Updates : public testing::TestWithParam<std::tuple<Optimizer, bool>> {};

TEST_P(Updates, OfAllVariablesAreOneStepWithTheBitsOfSingleOnes) {
  const auto& [optimizer, ref] = GetParam();
  Model m;
  m.ref = ref;
  many_variables(m, optimizer);
  const std::vector<Output> reads = m.reads();
  const Ran single = train(m, reads, false);
  EXPECT_EQ(single.steps.size(), m.updates.size());
  for (int threads : {1, 2, 5}) {
    const Ran all = train(m, reads, true, threads);
    expect_equal_bits(all, single);
    ASSERT_EQ(all.steps.size(), 1u);
    for (const Node* n : m.updates)
      EXPECT_EQ(std::count(all.steps[0].begin(), all.steps[0].end(), n->name()), 1) << n->name();
  }
  const Ran reference = train(m, reads, true, 1, runtime::PlanMode::kReference);
  for (size_t i = 0; i < single.values.size(); ++i)
    expect_close(single.values[i], reference.values[i], 1e-4f, cat("value ", i));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Updates,
                         testing::Combine(testing::ValuesIn(kOptimizers), testing::Bool()),
                         [](const auto& info) {
                           return cat(std::get<1>(info.param) ? "" : "Resource", std::get<0>(info.param).op);
                         });

TEST(UpdateGroups, DifferentHyperParametersAreDifferentSteps) {
  Model m;
  const Optimizer& o = kOptimizers[1];
  for (float rate : {0.1f, 0.2f}) {
    const std::vector<Output> h = m.hypers(o, rate);
    for (int k = 0; k < 3; ++k)
      m.update(o, m.variable({7}, 1.f), h, m.constant(random_array({7}, 3, 1.f)), {7});
  }
  const std::vector<Output> reads = m.reads();
  const Ran all = train(m, reads, true);
  EXPECT_EQ(all.steps.size(), 2u);
  expect_equal_bits(all, train(m, reads, false));
}

// The second half of the variables moves by what the first half became: alternating training in one run.
TEST(UpdateGroups, AnUpdateThatNeedsAnotherOnesResultIsALaterStep) {
  for (bool ref : {false, true}) {
    Model m;
    m.ref = ref;
    const Optimizer& o = kOptimizers[0];
    const std::vector<Output> h = m.hypers(o, 0.5f);
    std::vector<Output> first;
    std::vector<Node*> first_updates;
    for (int k = 0; k < 4; ++k) {
      first.push_back(m.variable({33}, 1.f));
      first_updates.push_back(m.update(o, first.back(), h, m.constant(random_array({33}, 50, 1.f)), {33}));
    }
    for (int k = 0; k < 4; ++k)
      m.update(o, m.variable({33}, 1.f), h, m.read(first[static_cast<size_t>(k)], {first_updates[3]}), {33});
    const std::vector<Output> reads = m.reads();
    const Ran all = train(m, reads, true);
    ASSERT_EQ(all.steps.size(), 2u);
    EXPECT_EQ(std::count(all.steps[0].begin(), all.steps[0].end(), "train7"), 0);
    EXPECT_EQ(std::count(all.steps[1].begin(), all.steps[1].end(), "train7"), 1);
    expect_equal_bits(all, train(m, reads, false));
    const Ran reference = train(m, reads, true, 1, runtime::PlanMode::kReference);
    for (size_t i = 0; i < reads.size(); ++i)
      expect_close(all.values[i], reference.values[i], 1e-5f, cat("value ", i));
  }
}

TEST(UpdateGroups, TwoUpdatesOfOneVariableKeepTheirOrder) {
  Model m;
  const Optimizer& o = kOptimizers[0];
  Output w = m.variable({100}, 1.f);
  const std::vector<Output> h = m.hypers(o, 0.5f);
  Node* one = m.update(o, w, h, m.read(w), {100});
  m.update(o, w, h, m.read(w, {one}), {100}, {one});
  const std::vector<Output> reads = m.reads();
  const Ran all = train(m, reads, true);
  EXPECT_EQ(all.steps.size(), 2u);
  expect_equal_bits(all, train(m, reads, false));
}

// A read that came before the updates in the author's order sees the old value, also of a variable whose
// update waits for others now.
TEST(UpdateGroups, WhatWasReadBeforeIsTheOldValue) {
  Model m;
  const Optimizer& o = kOptimizers[0];
  const std::vector<Output> h = m.hypers(o, 1.f);
  Output a = m.variable({5}, 1.f), b = m.variable({5}, 1.f);
  Output before = m.op("Neg", {m.read(a)});
  m.update(o, a, h, m.constant(random_array({5}, 7, 1.f)), {5}, {before.node});
  m.update(o, b, h, m.constant(random_array({5}, 8, 1.f)), {5});
  Output after = m.read(a, m.updates);
  std::vector<Array> got[2];
  for (int k : {0, 1}) {
    runtime::SessionOptions options;
    options.intra_op_threads = 2;
    if (k) options.mode = runtime::PlanMode::kReference;
    runtime::Session s(m.g, options);
    s.run({}, {}, m.initializers);
    got[k] = s.run({before, after}, {}, m.updates);
  }
  expect_close(got[0][0], got[1][0], 1e-7f, "before");
  expect_close(got[0][1], got[1][1], 1e-6f, "after");
}

// Dense layers of a small batch: gradients are all there is, so that keeping them all would be felt.
TEST(UpdateGroups, MemoryRisesByASixteenthAtMost) {
  Model m;
  const Optimizer& o = kOptimizers[1];
  constexpr int kLayers = 24;
  constexpr int64_t kWide = 384;
  Output x = m.constant(random_array({2, kWide}, 5, 1.f));
  std::vector<Output> weights;
  for (int k = 0; k < kLayers; ++k) {
    weights.push_back(m.variable({kWide, kWide}, 0.05f));
    x = m.op("Tanh", {m.op("MatMul", {x, m.read(weights.back())})});
  }
  Output loss = m.op("L2Loss", {x});
  const std::vector<graph::GradValue> grads = passes::gradients({loss}, weights);
  const std::vector<Output> h = m.hypers(o, 0.01f);
  for (int k = 0; k < kLayers; ++k)
    m.update(o, weights[static_cast<size_t>(k)], h, grads[static_cast<size_t>(k)].dense, {kWide, kWide});
  const std::vector<Output> reads = m.reads();
  const Ran single = train(m, reads, false), all = train(m, reads, true);
  expect_equal_bits(all, single);
  EXPECT_LT(all.steps.size(), single.steps.size());
  EXPECT_GT(all.steps.size(), 1u);
  EXPECT_LE(all.arena, single.arena + std::max<size_t>(single.arena / 16, size_t{1} << 20) +
                           static_cast<size_t>(kWide * kWide) * 4);
}

}  // namespace
}  // namespace sluice::test
