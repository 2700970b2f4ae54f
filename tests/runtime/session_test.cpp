#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/plan/plan.h"
#include "runtime/trace.h"
#include "tests/runtime/toy.h"
#include "tests/support/temp_folder.h"

namespace sluice::runtime {
namespace {

// The code and text of the error that f throws.
template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(Code::kOk, "no error");
}

bool has(const Error& e, std::string_view part) {
  return std::string_view(e.what()).find(part) != std::string_view::npos;
}

TEST(Session, ComputesWhatIsAskedFor) {
  Toy t;
  Output x = t.placeholder({-1});
  Output y = t.op("Add", {t.op("Mul", {x, x}), t.scalar(1)});
  Session s(t.g, t.options());
  EXPECT_EQ(floats(s.run({y}, {{x, vec({2, 3})}})[0]), (std::vector<float>{5, 10}));
  EXPECT_EQ(floats(s.run({y}, {{x, vec({4})}})[0]), (std::vector<float>{17}));
}

TEST(Session, FeedsMayReplaceIntermediates) {  // G27
  Toy t;
  Output a = t.placeholder({}, "a");
  Output b = t.op("Add", {a, t.scalar(1)});
  Output y = t.op("Mul", {b, b});
  Session s(t.g, t.options());
  EXPECT_EQ(s.run({y}, {{a, Array::scalar(0.0f)}, {b, Array::scalar(5.0f)}})[0].item<float>(), 25);
  EXPECT_EQ(s.run({y}, {{b, Array::scalar(5.0f)}})[0].item<float>(), 25);
  EXPECT_EQ(s.run({y}, {{a, Array::scalar(0.0f)}})[0].item<float>(), 1);
}

TEST(SessionErrors, HaveTensorFlowsWords) {
  Toy t;
  Session empty(t.g, t.options());
  EXPECT_TRUE(has(error_of([&] { empty.run({}); }), "The Session graph is empty."));
  Output x = t.placeholder({3}, "x");
  Output y = t.op("Neg", {x}, {}, "y");
  Node* n = t.node("NoOp", {});
  Session s(t.g, t.options());
  EXPECT_TRUE(has(error_of([&] { s.run({}); }), "Must specify at least one target"));
  Error missing = error_of([&] { s.run({y}); });
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_TRUE(
      has(missing, "You must feed a value for placeholder tensor 'x' with dtype float and shape [3]"));
  EXPECT_TRUE(has(missing, "toy.h"));  // the author's line
  EXPECT_TRUE(has(error_of([&] {
                    s.run({y}, {{x, vec({1, 2})}});
                  }),
                  "Cannot feed value of shape (2,) for Tensor 'x:0', which has shape '(3,)'"));
  EXPECT_TRUE(has(error_of([&] {
                    s.run({y}, {{x, Array::from<int32_t>({3}, {1, 2, 3})}});
                  }),
                  "has type float"));
  EXPECT_TRUE(has(error_of([&] {
                    s.run({y}, {{x, vec({1, 2, 3})}, {x, vec({1, 2, 3})}});
                  }),
                  "Endpoint \"x:0\" fed more than once."));
  EXPECT_TRUE(has(error_of([&] { s.run({x}, {{x, vec({1, 2, 3})}}); }), "x:0 is both fed and fetched."));
  EXPECT_TRUE(has(error_of([&] { s.run({n->output()}); }), "which produces no output"));
  Toy other;
  Output z = other.placeholder({3}, "z");
  EXPECT_EQ(error_of([&] { s.run({y}, {{z, vec({1, 2, 3})}}); }).code(), Code::kNotFound);
  EXPECT_EQ(floats(s.run({y}, {{x, vec({1, 2, 3})}})[0]), (std::vector<float>{-1, -2, -3}));  // still usable
}

TEST(SessionErrors, NameNodeOpTypesAndLine) {
  Toy t;
  Output x = t.placeholder({2});
  Output y = t.op("Fail", {x}, {}, "bad");
  Session s(t.g, t.options());
  const Error e = error_of([&] { s.run({y}, {{x, vec({1, 2})}}); });
  EXPECT_EQ(e.code(), Code::kInvalidArgument);
  EXPECT_EQ(e.node(), "bad");
  for (const char* part : {"this op always fails", "op: 'Fail'", "float[2]", "{{node bad}}", "toy.h:"})
    EXPECT_TRUE(has(e, part)) << part << " in " << e.what();
}

TEST(SessionErrors, AnOpWithoutKernelIsNamed) {
  Toy t;
  t.kernels = KernelRegistry();
  Output y = t.op("Neg", {t.placeholder({2})}, {}, "y");
  Session s(t.g, t.options());
  const Error e = error_of([&] { s.run({y}, {{y.node->input(0), vec({1, 2})}}); });
  EXPECT_EQ(e.code(), Code::kUnimplemented);
  EXPECT_TRUE(has(e, "Neg"));
}

TEST(Session, PlansAreCachedByShapeAndBounded) {
  Toy t;
  Output x = t.placeholder({-1});
  Output y = t.op("Neg", {x});
  SessionOptions o = t.options();
  o.max_cached_plans = 2;
  Session s(t.g, o);
  for (int round = 0; round < 3; ++round) s.run({y}, {{x, vec({1})}});
  EXPECT_EQ(s.counters().plan_compiles, 1);
  EXPECT_EQ(s.counters().plan_hits, 2);
  s.run({y}, {{x, vec({1, 2})}});
  s.run({y}, {{x, vec({1, 2, 3})}});
  EXPECT_EQ(s.counters().cached_plans, 2u);
  s.run({y}, {{x, vec({1})}});
  EXPECT_EQ(s.counters().plan_compiles, 4);  // the first was dropped
}

TEST(Session, GrowingTheGraphKeepsPlansAndChangingANodeDoesNot) {
  Toy t;
  Output x = t.placeholder({-1});
  Output v = t.variable("v", {});
  Output y = t.op("Neg", {x});
  Node* init = t.assign(v, t.scalar(0));
  Node* bump = t.assign_add(v, t.scalar(1));
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  s.run({y}, {{x, vec({1})}});
  t.op("Neg", {y});
  s.run({y}, {{x, vec({1})}});
  EXPECT_EQ(s.counters().plan_compiles, 2);
  t.g.add_control_input(*y.node, *bump);
  s.run({y}, {{x, vec({1})}});
  EXPECT_EQ(s.counters().plan_compiles, 3);
  EXPECT_EQ(s.run({t.read(v)})[0].item<float>(), 1);
}

TEST(Session, ShapesFollowFedValues) {
  Toy t;
  Output x = t.placeholder({-1});
  Output shape = t.placeholder({2}, "shape", DType::kInt32);
  Output y = t.op("Neg", {t.op("Reshape", {x, shape})});
  Session s(t.g, t.options());
  auto run = [&](int32_t a, int32_t b) {
    return s.run({y}, {{x, vec({1, 2, 3, 4})}, {shape, Array::from<int32_t>({2}, {a, b})}})[0].dims();
  };
  EXPECT_EQ(run(2, 2), (Dims{2, 2}));
  EXPECT_EQ(run(1, 4), (Dims{1, 4}));
  EXPECT_EQ(run(2, 2), (Dims{2, 2}));
  EXPECT_EQ(s.counters().plan_compiles, 2);
  EXPECT_THROW(run(3, 2), Error);
}

TEST(Session, ShapeArithmeticVanishes) {
  Toy t;
  Output x = t.placeholder({-1, -1});
  Output z = t.op("Fill", {t.op("Shape", {x}), t.scalar(7)});
  Session s(t.g, t.options());
  Array feed = Array::zeros(DType::kFloat, {2, 3});
  EXPECT_EQ(floats(s.run({z}, {{x, feed}})[0]), std::vector<float>(6, 7));
  EXPECT_EQ(s.plan({z}, {{x, feed}}, {})->steps().size(), 0u);
}

TEST(Session, ValuesOfUnknownSizeCutThePlan) {
  Toy t;
  Output x = t.placeholder({-1});
  Output p = t.op("Positive", {x});
  Output q = t.op("Positive", {t.op("Add", {t.op("Mul", {p, p}), t.scalar(-2)})});
  Output y = t.op("Neg", {q});
  Session s(t.g, t.options());
  auto r = s.run({y, p, t.op("Neg", {x})}, {{x, vec({-1, 1, 2, 3})}});
  EXPECT_EQ(floats(r[0]), (std::vector<float>{-2, -7}));
  EXPECT_EQ(floats(r[1]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(floats(r[2]), (std::vector<float>{1, -1, -2, -3}));
  EXPECT_EQ(floats(s.run({y}, {{x, vec({-1, 1})}})[0]), std::vector<float>{});
}

TEST(Session, LaterPartsAreCompiledOncePerSize) {
  Toy t;
  Output x = t.placeholder({-1});
  Output v = t.variable("v", {});
  Node* init = t.assign(v, t.scalar(0));
  Output y = t.op("Mul", {t.op("Positive", {x}), t.scalar(2)});
  Node* add = t.assign_add(v, t.scalar(1), {y.node});
  Output count = t.read(v, {add});
  std::vector<PlanMode> modes{PlanMode::kOptimized, PlanMode::kReference};
  for (PlanMode mode : modes) {
    SessionOptions o = t.options();
    o.mode = mode;
    Session s(t.g, o);
    s.run({}, {}, {init});
    for (int k = 1; k <= 40; ++k) {
      std::vector<float> feed(8, -1.0f);
      std::vector<float> want;
      for (int i = 0; i < k % 5; ++i) feed[static_cast<size_t>(i)] = 3, want.push_back(6);
      auto r = s.run({y, count}, {{x, vec(feed)}});
      ASSERT_EQ(floats(r[0]), want);
      ASSERT_EQ(r[1].item<float>(), static_cast<float>(k));
    }
  }
}

TEST(Session, DevicesThatAreNotHereAreRefusedOrMoved) {
  Toy t;
  Node& far = t.g.add({.op = "Neg", .name = "far", .inputs = {t.scalar(1)}, .device = "/device:GPU:0"});
  {
    Session s(t.g, t.options());
    const Error e = error_of([&] { s.run({far.output()}); });
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    EXPECT_TRUE(has(e, "explicitly assigned to /device:GPU:0")) << e.what();
  }
  SessionOptions o = t.options();
  o.allow_soft_placement = true;
  Session s(t.g, o);
  EXPECT_EQ(s.run({far.output()})[0].item<float>(), -1);
}

TEST(Session, StringsTravelOutsideTheArena) {
  Toy t;
  Output x = t.placeholder({}, "x", DType::kString);
  Output y = t.op("Greet", {x});
  Session s(t.g, t.options());
  auto first = s.run({y, t.op("Identity", {y})}, {{x, Array::strings({}, {"a"})}});
  EXPECT_EQ(s.run({y}, {{x, Array::strings({}, {"b"})}})[0].item<std::string>(), "hello b");
  EXPECT_EQ(first[0].item<std::string>(), "hello a");
  EXPECT_EQ(first[1].item<std::string>(), "hello a");
}

TEST(Session, CloseEndsARunWithCancelled) {
  Toy t;
  Output x = t.placeholder({1});
  Output y = t.op("Wait", {x});
  Session s(t.g, t.options());
  Code code = Code::kOk;
  std::thread runner([&] { code = error_of([&] { s.run({y}, {{x, vec({1})}}); }).code(); });
  while (s.counters().plan_compiles == 0) std::this_thread::yield();
  s.close();
  runner.join();
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_TRUE(has(error_of([&] { s.run({y}, {{x, vec({1})}}); }), "Attempted to use a closed Session."));
}

TEST(Session, ATokenEndsARun) {
  Toy t;
  Output x = t.placeholder({1});
  Output y = t.op("Wait", {x});
  Session s(t.g, t.options());
  RunOptions o;
  o.cancel = CancelToken();
  CancelToken token = o.cancel;
  Code code = Code::kOk;
  std::thread runner([&] { code = error_of([&] { s.run({y}, {{x, vec({1})}}, {}, o); }).code(); });
  while (s.counters().plan_compiles == 0) std::this_thread::yield();
  token.cancel();
  runner.join();
  EXPECT_EQ(code, Code::kCancelled);
}

TEST(Session, ATimeoutIsDeadlineExceeded) {
  Toy t;
  Output x = t.placeholder({1});
  Output y = t.op("Wait", {x});
  Session s(t.g, t.options());
  RunOptions o;
  o.timeout_ms = 20;
  const Error e = error_of([&] { s.run({y}, {{x, vec({1})}}, {}, o); });
  EXPECT_EQ(e.code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(has(e, "Timed out waiting for notification"));
}

TEST(Session, IndependentStepsRunSideBySide) {
  Toy t;
  // Each of the two waits until the other has begun: in order this would never end.
  static std::atomic<int> begun{0};
  begun = 0;
  t.kernels.add({.op = "Meet", .name = "toy", .make = plain([](KernelRun& r) {
                                                ++begun;
                                                while (begun < 2) {
                                                  r.state().cancel->check();
                                                  std::this_thread::yield();
                                                }
                                                *r.out<float>(0) = *r.in<float>(0);
                                              })});
  t.ops.add({.name = "Meet",
             .inputs = {"x: float"},
             .outputs = {"y: float"},
             .doc = "Waits for another.",
             .traits = graph::kStateful,
             .infer = graph::same_shape});
  Graph g(t.ops);
  auto add = [&](const char* op, std::vector<Output> in, AttrMap attrs = {}) {
    return g.add({.op = op, .inputs = std::move(in), .attrs = std::move(attrs)}).output();
  };
  Output x = add("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", Shape{}}});
  Output y = add("Add", {add("Meet", {x}), add("Meet", {x})});
  SessionOptions o = t.options();
  o.inter_op_threads = 2;
  Session s(g, o);
  RunOptions limit;
  limit.timeout_ms = 60'000;
  EXPECT_EQ(s.run({y}, {{x, Array::scalar(2.0f)}}, {}, limit)[0].item<float>(), 4);
}

TEST(SessionErrors, TheFirstErrorEndsAConcurrentRun) {
  Toy t;
  Output x = t.placeholder({1});
  Output a = t.op("Fail", {x}), b = t.op("Wait", {x});
  SessionOptions o = t.options();
  o.inter_op_threads = 2;
  Session s(t.g, o);
  const Error e = error_of([&] { s.run({a, b}, {{x, vec({1})}}); });
  EXPECT_EQ(e.code(), Code::kInvalidArgument);
  EXPECT_TRUE(has(e, "this op always fails"));
}

TEST(Session, TracesNameStepsAndNodes) {
  Toy t;
  Output x = t.placeholder({2});
  Output y = t.op("Neg", {x}, {}, "minus");
  Session s(t.g, t.options());
  RunOptions o;
  o.trace_level = TraceLevel::kFull;
  RunMetadata m;
  s.run({y}, {{x, vec({1, 2})}}, {}, o, &m);
  ASSERT_EQ(m.steps.size(), 1u);
  EXPECT_EQ(m.steps[0].op, "Neg");
  EXPECT_EQ(m.steps[0].nodes, std::vector<std::string>{"minus"});
  EXPECT_TRUE(m.compiled);
  const std::string json = chrome_trace(m);
  EXPECT_NE(json.find("\"ph\":\"X\""), std::string::npos);
  EXPECT_NE(json.find("minus"), std::string::npos);
}

TEST(Session, MemoryLimitSaysByHowMuchItFails) {
  Toy t;
  Output x = t.placeholder({1024});
  Output y = t.op("Add", {t.op("Neg", {x}), t.op("Mul", {x, x})});
  SessionOptions o = t.options();
  o.memory_limit = 4096;
  Session s(t.g, o);
  const Error e = error_of([&] { s.run({y}, {{x, Array::zeros(DType::kFloat, {1024})}}); });
  EXPECT_EQ(e.code(), Code::kResourceExhausted);
  EXPECT_TRUE(has(e, "4096 more than memory_limit = 4096")) << e.what();
}

TEST(Session, Reference64ComputesInDouble) {
  Toy t;
  Output x = t.placeholder({1});
  Output y = t.op("Add", {x, t.constant(Literal::scalar(1e-9f))});
  SessionOptions o = t.options();
  o.mode = PlanMode::kReference64;
  Session s(t.g, o);
  const Array r = s.run({y}, {{x, vec({1})}})[0];
  ASSERT_EQ(r.dtype(), DType::kDouble);
  EXPECT_DOUBLE_EQ(r.item<double>(), 1.0 + static_cast<double>(1e-9f));
}

TEST(Session, VeryDeepGraphsRun) {  // G30
  Toy t;
  Output x = t.placeholder({}, "x");
  Output one = t.scalar(1), y = x;
  for (int i = 0; i < 50'000; ++i) y = t.op("Add", {y, one});
  Session s(t.g, t.options());
  EXPECT_EQ(s.run({y}, {{x, Array::scalar(0.0f)}})[0].item<float>(), 50'000);
  EXPECT_LE(s.counters().arena_bytes, 4096u);
}

TEST(Session, DumpsGraphAndPlanAfterEachPass) {
  Toy t;
  Output x = t.placeholder({2}, "x");
  Output y = t.op("Neg", {t.op("Identity", {x})}, {}, "minus");
  const testing_support::TempFolder dir;
  setenv("SLUICE_DUMP", dir.path().c_str(), 1);
  {
    Session s(t.g, t.options());
    s.run({y}, {{x, vec({1, 2})}});
  }
  unsetenv("SLUICE_DUMP");
  for (const char* file :
       {"plan0_graph.txt", "plan0_00_lowered.txt", "plan0_final.txt", "plan0_final.json"}) {
    std::ifstream in(dir / file);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_NE(text.str().find("minus"), std::string::npos) << file;
  }
}

TEST(SessionErrors, AFedVariableCannotBeWritten) {
  Toy t;
  Output v = t.ref_variable("v", {});
  Output add = t.op("AssignAdd", {v, t.scalar(1)});
  Session s(t.g, t.options());
  EXPECT_EQ(error_of([&] {
              s.run({}, {{v, Array::scalar(1.0f)}}, {add.node});
            }).code(),
            Code::kInvalidArgument);
}

TEST(Plan, ExplainsItselfAsTextAndJson) {
  Toy t;
  Output x = t.placeholder({2}, "x");
  Output y = t.op("Neg", {t.op("Mul", {x, x}, {}, "square")}, {}, "minus");
  Session s(t.g, t.options());
  auto plan = s.plan({y}, {{x, vec({1, 2})}}, {});
  EXPECT_NE(plan->str().find("square = Mul [toy]"), std::string::npos) << plan->str();
  EXPECT_NE(plan->json().find("\"kernel\":\"toy\""), std::string::npos);
  EXPECT_EQ(plan->arena_bytes(), 64u);  // Neg in place of Mul
}

}  // namespace
}  // namespace sluice::runtime
