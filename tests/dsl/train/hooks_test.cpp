#include "dsl/train/hooks.h"

#include <limits>

#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HookTest : public ::testing::Test, protected Counting {
 protected:
  TempDir dir;
  ManualClock clock;
  // Runs the train op until something stops it; the last step.
  int64_t run(Hooks hooks, int64_t at_most = 1000) {
    MonitoredSession s(chief(g), std::move(hooks), {.clock = &clock});
    int64_t last = 0;
    s.with([&] {
      while (!s.should_stop() && last < at_most) {
        last = s.run({train_op})[0].item<int64_t>();
        clock.advance(1);
      }
    });
    return last;
  }
  std::string refusal_without_a_step(std::shared_ptr<SessionRunHook> hook) {
    Graph empty;
    return error_of([&] { MonitoredSession s(chief(empty), {hook}); });
  }
};

TEST_F(HookTest, TheStepReadIsMadeOnceAndOwnsItsValue) {
  Tensor a = get_or_create_global_step_read(g);
  EXPECT_EQ(a, get_or_create_global_step_read(g));
  EXPECT_EQ(a.name(), "global_step/add:0");
  EXPECT_EQ(g.collections().elements(graph::keys::kGlobalStepReadOpCache).size(), 1u);
  Graph empty;
  EXPECT_FALSE(get_or_create_global_step_read(empty));
}

TEST_F(HookTest, StopAtStepTakesOneOfTwo) {
  EXPECT_THAT(error_of([] { StopAtStepHook h({}); }),
              HasSubstr("One of num_steps or last_step must be specified."));
  EXPECT_THAT(error_of([] { StopAtStepHook h({.num_steps = 1, .last_step = 1}); }),
              HasSubstr("Only one of num_steps or last_step can be specified."));
  EXPECT_THAT(refusal_without_a_step(stop_at(1)),
              HasSubstr("Global step should be created to use StopAtStepHook."));
}

TEST_F(HookTest, StopsAtTheStepExactly) {
  EXPECT_EQ(run({stop_at(7)}), 7);
  EXPECT_EQ(run({std::make_shared<StopAtStepHook>(StopAtStepOptions{.num_steps = 3})}), 3);
}

TEST_F(HookTest, NumStepsCountsFromTheStart) {
  Node& jump = assign_op(step, constant(g, Literal::scalar<int64_t>(10)));
  auto scaffold =
      std::make_shared<Scaffold>(ScaffoldOptions{.init_fn = [&](Session& s) { s.run({}, {}, {&jump}); }});
  auto hook = std::make_shared<StopAtStepHook>(StopAtStepOptions{.num_steps = 4});
  MonitoredSession s(chief(g, {.scaffold = scaffold}), {hook});
  int runs = 0;
  for (; !s.should_stop(); ++runs) s.run({train_op});
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(hook->last_step(), 14);
}

TEST_F(HookTest, NanFailsOrStops) {
  Tensor fed = placeholder_with_default(constant(g, 1.0), {}, "fed"), x = identity(fed, "x");
  const Array nan = Array::scalar(std::numeric_limits<float>::quiet_NaN());
  const Array inf = Array::scalar(std::numeric_limits<float>::infinity());
  LogCapture log;
  {
    MonitoredSession s(chief(g), {std::make_shared<NanTensorHook>(x)});
    s.run({x});
    s.run({x}, {{fed, inf}});  // infinity is not NaN
    EXPECT_THROW(s.run({x}, {{fed, nan}}), NanLossDuringTrainingError);
    EXPECT_THAT(error_of([&] { s.run({x}, {{fed, nan}}); }), HasSubstr("NaN loss during training."));
  }
  EXPECT_GE(log.count("Model diverged with loss = NaN."), 1);
  MonitoredSession s(chief(g), {std::make_shared<NanTensorHook>(x, false)});
  s.run({x}, {{fed, nan}});
  EXPECT_TRUE(s.should_stop());
}

TEST_F(HookTest, LoggingNeedsOneWayToTrigger) {
  const char* one = "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.";
  EXPECT_THAT(error_of([&] { LoggingTensorHook h({.tensors = {train_op}}); }), HasSubstr(one));
  EXPECT_THAT(
      error_of([&] { LoggingTensorHook h({.tensors = {train_op}, .every_n_iter = 1, .every_n_secs = 1}); }),
      HasSubstr(one));
  EXPECT_THAT(error_of([&] { LoggingTensorHook h({.tensors = {train_op}, .every_n_iter = 0}); }),
              HasSubstr("invalid every_n_iter=0."));
  EXPECT_NO_THROW(LoggingTensorHook({.tensors = {train_op}, .at_end = true}));
}

TEST_F(HookTest, LogsSortedTagsWithTheTimeSince) {
  auto hook = std::make_shared<LoggingTensorHook>(
      LoggingTensorOptions{.tagged = {{"z", train_op}, {"a", step.snapshot()}}, .every_n_iter = 2});
  LogCapture log;
  run({hook}, 3);
  std::vector<std::string> lines;
  for (const auto& l : log.lines)
    if (l.find("z = ") != std::string::npos) lines.push_back(l);
  EXPECT_THAT(lines, ElementsAre(::testing::MatchesRegex("a = [01], z = 1"),
                                 ::testing::MatchesRegex("a = [23], z = 3 \\(2\\.000 sec\\)")));
}

TEST_F(HookTest, LogsListsInTheirOrderByName) {
  Tensor half = constant(g, std::vector<float>{0.5f, 1.25f}, {}, "half");
  auto hook = std::make_shared<LoggingTensorHook>(
      LoggingTensorOptions{.tensors = {"half", half.name()}, .every_n_secs = 10});
  LogCapture log;
  run({hook}, 11);
  EXPECT_EQ(log.count("half = [0.5 1.25], half:0 = [0.5 1.25]"), 2);
  EXPECT_EQ(log.count("(10.000 sec)"), 1);
}

TEST_F(HookTest, ANameOfSeveralOutputsIsAmbiguous) {
  split(constant(g, std::vector<float>{1, 2}), 2, 0, "halves");
  auto hook =
      std::make_shared<LoggingTensorHook>(LoggingTensorOptions{.tensors = {"halves"}, .every_n_iter = 1});
  EXPECT_THAT(error_of([&] { run({hook}); }),
              HasSubstr("Name halves is ambiguous, as this `Operation` has multiple outputs (at least 2)."));
}

TEST_F(HookTest, LogsAtTheEndByAnExtraRun) {
  auto hook = std::make_shared<LoggingTensorHook>(
      LoggingTensorOptions{.tagged = {{"step", step.snapshot()}}, .at_end = true});
  LogCapture log;
  run({hook, stop_at(3)});
  EXPECT_EQ(log.count("step = 3"), 1);
  EXPECT_EQ(log.count("step = "), 1);
}

TEST_F(HookTest, AFormatterWritesTheLine) {
  auto hook = std::make_shared<LoggingTensorHook>(LoggingTensorOptions{
      .tagged = {{"n", train_op}}, .every_n_iter = 1, .formatter = [](const std::map<std::string, Array>& v) {
        return cat("step number ", v.at("n").item<int64_t>());
      }});
  LogCapture log;
  run({hook}, 2);
  EXPECT_EQ(log.count("step number 1") + log.count("step number 2"), 2);
}

TEST_F(HookTest, IterationsAreTheProcessesOwn) {  // not the global step
  Tensor jump = assign_add(step, 10, "jump");
  auto hook =
      std::make_shared<LoggingTensorHook>(LoggingTensorOptions{.tagged = {{"n", jump}}, .every_n_iter = 2});
  LogCapture log;
  MonitoredSession s(chief(g), {hook});
  for (int i = 0; i < 4; ++i) s.run({jump});
  EXPECT_EQ(log.count("n = "), 2);
}

TEST_F(HookTest, CountsStepsASecond) {
  auto hook =
      std::make_shared<StepCounterHook>(StepCounterOptions{.every_n_steps = 5, .output_dir = dir.str()});
  LogCapture log;
  run({hook, stop_at(12)});
  FileWriterCache::get(dir.str())->flush();
  EXPECT_THAT(scalars_in(dir.str(), "global_step/sec"),
              ElementsAre(std::pair<int64_t, float>(6, 1.0f), std::pair<int64_t, float>(11, 1.0f)));
  EXPECT_EQ(log.count("global_step/sec: 1"), 2);
  EXPECT_THAT(refusal_without_a_step(hook),
              HasSubstr("Global step should be created to use StepCounterHook."));
}

TEST_F(HookTest, WarnsFiveTimesThatTheStepStandsStill) {
  auto hook = std::make_shared<StepCounterHook>();
  LogCapture log;
  MonitoredSession s(chief(g), {hook});
  for (int i = 0; i < 10; ++i) s.run({step.snapshot()});
  EXPECT_EQ(log.count("It seems that global step (tf.train.get_global_step) has not been increased."), 5);
}

TEST_F(HookTest, FinalOpsRunAtTheEnd) {
  Tensor x = placeholder(g, DType::kFloat, {}, "x");
  auto hook = std::make_shared<FinalOpsHook>(std::vector<Output>{step.snapshot(), identity(x)},
                                             std::vector<Feed>{{x, Array::scalar(4.0f)}});
  run({hook, stop_at(3)});
  ASSERT_EQ(hook->final_ops_values().size(), 2u);
  EXPECT_EQ(hook->final_ops_values()[0].item<int64_t>(), 3);
  EXPECT_EQ(hook->final_ops_values()[1].item<float>(), 4);
}

TEST_F(HookTest, FinalOpsThatReadInputAreWarnedAbout) {
  Variable ref =
      make_variable(g, Literal::scalar<int64_t>(5), "ref", {.trainable = false, .use_resource = false});
  Node& count = g.add({.op = "CountUpTo", .inputs = {ref.handle()}, .attrs = {{"limit", int64_t{5}}}});
  auto hook = std::make_shared<FinalOpsHook>(std::vector<Output>{count.output()});
  LogCapture log;
  EXPECT_THAT(error_of([&] { run({hook, stop_at(1)}); }), HasSubstr("limit"));
  EXPECT_EQ(log.count("An OutOfRangeError or StopIteration exception is raised by the code in FinalOpsHook."),
            1);
}

TEST_F(HookTest, WaitsForAGlobalStep) {
  // Each look moves the clock; another worker's steps are played by a second hook's clock.
  struct Steps final : Clock {
    double now() override { return slept; }
    void sleep(double s) override {
      slept += s;
      advance();
    }
    double slept = 0;
    std::function<void()> advance;
  } steps;
  SingularMonitoredSession* session = nullptr;
  steps.advance = [&] { session->raw_session().run({train_op}); };
  auto hook = std::make_shared<GlobalStepWaiterHook>(3);
  SingularMonitoredSession s(g, {hook}, {}, {.clock = &steps});
  session = &s;
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 4);
  EXPECT_EQ(steps.slept, 1.5);  // looked every half second
  s.run({train_op});
  EXPECT_EQ(steps.slept, 1.5);
}

TEST_F(HookTest, AWaitForStepZeroIsNone) {
  auto hook = std::make_shared<GlobalStepWaiterHook>(0);
  EXPECT_EQ(run({hook, stop_at(1)}), 1);
  EXPECT_EQ(clock.now(), 1);
}

TEST_F(HookTest, FeedsWhatAFunctionGives) {
  Tensor x = placeholder(g, DType::kFloat, {}, "x");
  Tensor twice = x + x;
  float next = 0;
  auto hook = std::make_shared<FeedFnHook>([&] { return std::vector<Feed>{{x, Array::scalar(++next)}}; });
  MonitoredSession s(chief(g), {hook});
  EXPECT_EQ(s.run({twice})[0].item<float>(), 2);
  EXPECT_EQ(s.run({twice})[0].item<float>(), 4);
}

}  // namespace
}  // namespace sluice::dsl::train
