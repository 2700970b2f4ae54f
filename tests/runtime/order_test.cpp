// Side effects happen in the order that data and control edges ask for, and each once (cases.md, C).

#include <gtest/gtest.h>

#include <thread>

#include "tests/runtime/toy.h"

namespace sluice::runtime {
namespace {

TEST(Order, AReadBeforeAnAssignKeepsItsValue) {  // C01
  for (int threads : {1, 2, 8}) {
    Toy t;
    Output v = t.variable("v", {});
    Node* init = t.assign(v, t.scalar(0));
    Output old = t.read(v);
    Output next = t.op("Add", {t.read(v), t.scalar(1)});
    Node* write = t.assign(v, next, {old.node});
    Output fresh = t.read(v, {write});
    SessionOptions o = t.options();
    o.intra_op_threads = o.inter_op_threads = threads;
    Session s(t.g, o);
    s.run({}, {}, {init});
    for (int k = 0; k < 500; ++k) {
      auto r = s.run({old, fresh});
      ASSERT_EQ(r[0].item<float>(), static_cast<float>(k));
      ASSERT_EQ(r[1].item<float>(), static_cast<float>(k + 1));
    }
  }
}

TEST(Order, AReadBeforeAnAssignKeepsItsValueWithRefs) {  // C01 on VariableV2
  Toy t;
  Output v = t.ref_variable("v", {});
  Node* init = t.node("Assign", {v, t.scalar(0)});
  Output old = t.op("Identity", {v});
  Output write = t.op("Assign", {v, t.op("Add", {v, t.scalar(1)})}, {old.node});
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  for (int k = 0; k < 20; ++k) {
    auto r = s.run({old, write});
    ASSERT_EQ(r[0].item<float>(), static_cast<float>(k));
    ASSERT_EQ(r[1].item<float>(), static_cast<float>(k + 1));
  }
}

TEST(Order, EveryControlInputRuns) {  // C03
  Toy t;
  Output v = t.variable("v", {});
  Node* init = t.assign(v, t.scalar(0));
  Node* p = t.assign_add(v, t.scalar(100));
  Node* q = t.assign_add(v, t.scalar(1));
  Node* n = t.node("NoOp", {}, {p, q});
  Output read = t.read(v);
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  for (int k = 1; k <= 10; ++k) {
    s.run({}, {}, {n});
    ASSERT_EQ(s.run({read})[0].item<float>(), static_cast<float>(101 * k));
  }
}

TEST(Order, InitialiseThenReadInOneRun) {  // C04
  Toy t;
  Output v = t.variable("v", {});
  Node* init = t.assign(v, t.scalar(7));
  Output r = t.read(v, {init});
  for (int k = 0; k < 500; ++k) {
    Session s(t.g, t.options());
    ASSERT_EQ(s.run({r})[0].item<float>(), 7);
  }
}

TEST(Order, ANewShapeIsSeenByWhatFollows) {  // C05
  Toy t;
  Output v = t.ref_variable("v", {});
  Node* init = t.node("Assign", {v, t.scalar(0)});
  Node* assign = t.node("Assign", {v, t.constant(Literal::vector<float>({1, 2}))});
  Output y = t.op("Add", {t.op("Identity", {v}, {assign}), t.scalar(2)});
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  for (int k = 0; k < 5; ++k) ASSERT_EQ(floats(s.run({y})[0]), (std::vector<float>{3, 4}));
}

TEST(Order, FoldedConstantsKeepTheirControlEdges) {  // C08
  for (bool optimise : {true, false}) {
    Toy t;
    Output v = t.variable("v", {});
    Node* init = t.assign(v, t.scalar(0));
    Node* bump = t.assign_add(v, t.scalar(1));
    Output k = t.op("Add", {t.scalar(2), t.scalar(3)}, {bump});
    Output free = t.op("Add", {t.scalar(2), t.scalar(3)});
    Output read = t.read(v);
    SessionOptions o = t.options();
    if (!optimise) o.disabled_passes = {"evaluate", "remove_views", "merge_equal"};
    Session s(t.g, o);
    s.run({}, {}, {init});
    EXPECT_EQ(s.run({free})[0].item<float>(), 5);
    EXPECT_EQ(s.run({read})[0].item<float>(), 0);
    EXPECT_EQ(s.run({k})[0].item<float>(), 5);
    EXPECT_EQ(s.run({read})[0].item<float>(), 1);
  }
}

TEST(Order, WhatIsFetchedTwiceRunsOnce) {  // C09
  Toy t;
  Output v = t.ref_variable("v", {});
  Node* init = t.node("Assign", {v, t.scalar(0)});
  Output inc = t.op("AssignAdd", {v, t.scalar(1)});
  Output ten = t.op("Mul", {inc, t.scalar(10)});
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  auto r = s.run({inc, inc, ten});
  EXPECT_EQ(r[0].item<float>(), 1);
  EXPECT_EQ(r[1].item<float>(), 1);
  EXPECT_EQ(r[2].item<float>(), 10);
  EXPECT_EQ(s.run({v})[0].item<float>(), 1);
}

TEST(Order, ConcurrentRunsLoseNoUpdate) {  // C12
  Toy t;
  Output v = t.variable("v", {});
  Node* init = t.assign(v, t.scalar(0));
  Node* add = t.assign_add(v, t.scalar(1));
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  auto work = [&] {
    for (int k = 0; k < 10'000; ++k) s.run({}, {}, {add});
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  EXPECT_EQ(s.run({t.read(v)})[0].item<float>(), 20'000);
}

TEST(Order, ConcurrentReadersSeeWholeValues) {
  Toy t;
  Output v = t.variable("v", {64});
  Node* init = t.assign(v, t.constant(Literal::zeros(DType::kFloat, {64})));
  Node* add = t.assign_add(v, t.scalar(1));
  Output twice = t.op("Mul", {t.read(v), t.scalar(2)});
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  std::thread writer([&] {
    for (int k = 0; k < 2000; ++k) s.run({}, {}, {add});
  });
  float last = 0;
  for (int k = 0; k < 2000; ++k) {
    const std::vector<float> r = floats(s.run({twice})[0]);
    for (float x : r) ASSERT_EQ(x, r[0]);
    ASSERT_GE(r[0], last);
    last = r[0];
  }
  writer.join();
}

TEST(Order, NothingRunsThatNobodyAskedFor) {
  Toy t;
  Output v = t.variable("v", {});
  Node* init = t.assign(v, t.scalar(0));
  t.assign_add(v, t.scalar(1));
  Output read = t.read(v);
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  EXPECT_EQ(s.run({read})[0].item<float>(), 0);
}

TEST(Order, UpdatesAreInPlaceAfterTheLastReader) {
  Toy t;
  Output v = t.variable("v", {4});
  Node* init = t.assign(v, t.constant(Literal::vector<float>({1, 2, 3, 4})));
  Output r = t.read(v);
  Output twice = t.op("Mul", {r, t.scalar(2)});
  Node* add = t.assign_add(v, t.op("Neg", {r}));
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  auto variable = s.resources().find_variable("", "v");
  ASSERT_TRUE(variable);
  const void* before = variable->read()->buffer.data();
  EXPECT_EQ(floats(s.run({twice}, {}, {add})[0]), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(variable->read()->buffer.data(), before);
}

TEST(Order, UninitialisedVariablesAreNamed) {
  Toy t;
  Output v = t.variable("v", {2}), w = t.ref_variable("w", {2});
  Output is = t.op("VarIsInitializedOp", {v});
  Session s(t.g, t.options());
  EXPECT_FALSE(s.run({is})[0].item<bool>());
  for (Output o : {t.read(v), t.op("Identity", {w})}) {
    try {
      s.run({o});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kFailedPrecondition);
      EXPECT_NE(std::string(e.what()).find("uninitialized"), std::string::npos) << e.what();
    }
  }
  s.run({}, {}, {t.assign(v, t.constant(Literal::vector<float>({1, 2})))});
  EXPECT_TRUE(s.run({is})[0].item<bool>());
  EXPECT_EQ(floats(s.run({t.read(v)})[0]), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace sluice::runtime
