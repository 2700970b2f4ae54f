#include "dsl/train/monitored_session.h"

#include "runtime/local_master.h"
#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Monitored : public ::testing::Test, protected Counting {
 protected:
  Tensor x = placeholder_with_default(constant(g, 1.0), {}, "x"),
         y = placeholder_with_default(constant(g, 2.0), {}, "y");
  Tensor sum = x + y;
  std::vector<std::string> calls;
  std::shared_ptr<Recorder> recorder(const char* name, SessionRunArgs args = {}) {
    return std::make_shared<Recorder>(name, calls, std::move(args));
  }
  int64_t step_in(Session& s) { return global_step(s, step); }
};

TEST_F(Monitored, CallsHooksInOrder) {
  {
    MonitoredSession s(chief(g), {recorder("a"), recorder("b")});
    EXPECT_THAT(calls, ElementsAre("a.begin", "b.begin", "a.after_create_session", "b.after_create_session"));
    calls.clear();
    s.run({train_op});
    EXPECT_THAT(calls, ElementsAre("a.before_run", "b.before_run", "a.after_run", "b.after_run"));
    calls.clear();
    s.close();
  }
  EXPECT_THAT(calls, ElementsAre("a.end", "b.end"));
}

TEST_F(Monitored, BeginMayAddOpsAndTheGraphIsFinalAfterwards) {
  struct Adds final : SessionRunHook {
    void begin(const HookSetup& setup) override { constant(setup.graph, 1.0, DType::kFloat, "by_hook"); }
  };
  MonitoredSession s(chief(g), {std::make_shared<Adds>()});
  EXPECT_NE(g.find("by_hook"), nullptr);
  EXPECT_THAT(error_of([&] { constant(g, 1.0, DType::kFloat, "too_late"); }),
              AllOf(HasSubstr("finalized"), HasSubstr("too_late")));
  s.close();
  EXPECT_NO_THROW(constant(g, 1.0));  // open again, as it was
}

TEST_F(Monitored, AGraphThatWasFinalStaysFinal) {
  auto scaffold = std::make_shared<Scaffold>();
  scaffold->finalize(g);
  MonitoredSession s(chief(g, {.scaffold = scaffold}));
  s.close();
  EXPECT_TRUE(g.finalized());
}

TEST_F(Monitored, OneRunServesCallerAndHooks) {
  auto a = recorder("a", {.fetches = {sum, train_op}}), b = recorder("b", {.fetches = {y}});
  MonitoredSession s(chief(g), {a, b});
  std::vector<Array> out = s.run({train_op, x});
  EXPECT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].item<int64_t>(), 1);
  EXPECT_EQ(out[1].item<float>(), 1);
  EXPECT_THAT(a->seen, ElementsAre(3, 1));  // the train op ran once
  EXPECT_THAT(b->seen, ElementsAre(2));
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 2);
}

TEST_F(Monitored, TargetsOfHooksRun) {
  auto a = recorder("a", {.targets = {&train_op.node()}});
  SingularMonitoredSession s(g, {a});
  s.run({x});
  EXPECT_EQ(step_in(s.raw_session()), 1);
}

TEST_F(Monitored, HooksFeed) {
  auto a = recorder("a", {.feeds = {{x, Array::scalar(10.0f)}}});
  MonitoredSession s(chief(g), {a, recorder("b")});
  EXPECT_EQ(s.run({sum})[0].item<float>(), 12);
  EXPECT_EQ(s.run({sum}, {{y, Array::scalar(5.0f)}})[0].item<float>(), 15);
  a->args.feeds[0].value = Array::scalar(20.0f);
  EXPECT_EQ(s.run({sum}, {{y, Array::scalar(6.0f)}})[0].item<float>(), 26);
}

TEST_F(Monitored, TwoFeedsOfOneTensorAreRefused) {
  auto a = recorder("a", {.feeds = {{x, Array::scalar(1.0f)}}}),
       b = recorder("b", {.feeds = {{x, Array::scalar(1.0f)}}});
  {
    MonitoredSession s(chief(g), {a, b});
    EXPECT_THAT(error_of([&] { s.run({sum}); }),
                HasSubstr("Same tensor is fed by two hooks. Conflict(s): [x:0]"));
  }
  MonitoredSession s(chief(g), {a});
  EXPECT_THAT(error_of([&] {
                s.run({sum}, {{x, Array::scalar(1.0f)}});
              }),
              HasSubstr("Same tensor is fed by a SessionRunHook and user. Conflict(s): [x:0]"));
}

TEST_F(Monitored, TheStrongestOptionsCount) {
  auto a = recorder("a", {.options = RunOptions{.trace_level = runtime::TraceLevel::kFull}});
  auto b = recorder("b", {.options = RunOptions{.timeout_ms = 60000}});
  MonitoredSession s(chief(g), {a, b});
  RunMetadata metadata;
  s.run({train_op}, {}, {}, {}, &metadata);
  EXPECT_GT(b->traced, 0);
  EXPECT_EQ(metadata.steps.size(), static_cast<size_t>(b->traced));
}

TEST_F(Monitored, HooksSeeWhatTheCallerAskedFor) {
  struct Looks final : SessionRunHook {
    const SessionRunArgs* before_run(SessionRunContext& c) override {
      fetches = c.original_fetches().size(), feeds = c.original_feeds().size(),
      targets = c.original_targets().size();
      return nullptr;
    }
    size_t fetches = 0, feeds = 0, targets = 0;
  };
  auto looks = std::make_shared<Looks>();
  MonitoredSession s(chief(g), {looks, recorder("a", {.fetches = {x}})});
  s.run({sum, x}, {{y, Array::scalar(1.0f)}}, {&train_op.node()});
  EXPECT_THAT((std::vector<size_t>{looks->fetches, looks->feeds, looks->targets}), ElementsAre(2, 1, 1));
}

TEST_F(Monitored, RunsOfHooksAreNotSeenByHooks) {
  auto extra = std::make_shared<AfterRun>([&](SessionRunContext& c) { c.session().run({train_op}); });
  MonitoredSession s(chief(g), {extra, recorder("a")});
  calls.clear();
  s.run({train_op});
  EXPECT_THAT(calls, ElementsAre("a.before_run", "a.after_run"));
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 3);
}

TEST_F(Monitored, AStopCountsFromTheNextRunOn) {
  bool rest = false;
  auto stops = std::make_shared<AfterRun>([](SessionRunContext& c) { c.request_stop(); });
  auto later = std::make_shared<AfterRun>([&](SessionRunContext& c) { rest = c.stop_requested(); });
  MonitoredSession s(chief(g), {stops, later});
  EXPECT_FALSE(s.should_stop());
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 1);
  EXPECT_TRUE(rest);  // all hooks see the same step
  EXPECT_TRUE(s.should_stop());
  EXPECT_THAT(error_of([&] { s.run({train_op}); }),
              HasSubstr("Run called even after should_stop requested."));
}

TEST_F(Monitored, ClosesOnce) {
  MonitoredSession s(chief(g));
  s.close();
  EXPECT_TRUE(s.should_stop());
  EXPECT_THAT(error_of([&] { s.close(); }), HasSubstr("Session is already closed."));
  EXPECT_THAT(error_of([&] { s.run({train_op}); }),
              HasSubstr("Run called even after should_stop requested."));
}

TEST_F(Monitored, TheEndOfTheInputIsACleanEnd) {
  MonitoredSession s(chief(g), {recorder("a")});
  calls.clear();
  s.with([] { throw_error(Code::kOutOfRange, "End of sequence"); });
  EXPECT_THAT(calls, ElementsAre("a.end"));
  EXPECT_TRUE(s.should_stop());
}

TEST_F(Monitored, StopIterationIsACleanEnd) {
  MonitoredSession s(chief(g), {recorder("a")});
  calls.clear();
  s.with([] { throw StopIteration(); });
  EXPECT_THAT(calls, ElementsAre("a.end"));
}

TEST_F(Monitored, OtherErrorsLeaveEndOutAndGoOn) {
  MonitoredSession s(chief(g), {recorder("a")});
  calls.clear();
  EXPECT_THAT(error_of([&] { s.with([] { throw_error(Code::kInternal, "bang"); }); }), HasSubstr("bang"));
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_TRUE(s.should_stop());
  EXPECT_FALSE(g.finalized());
}

TEST_F(Monitored, TheDestructorClosesCleanlyUnlessAnErrorIsOnItsWay) {
  { MonitoredSession s(chief(g), {recorder("a")}); }
  EXPECT_EQ(calls.back(), "a.end");
  calls.clear();
  EXPECT_THROW(
      {
        MonitoredSession s(chief(g), {recorder("a")});
        throw std::runtime_error("mine");
      },
      std::runtime_error);
  EXPECT_EQ(calls.back(), "a.after_create_session");
}

TEST_F(Monitored, AnErrorInEndStillCloses) {
  struct Bad final : SessionRunHook {
    void end(Session&) override { throw_error(Code::kInternal, "in end"); }
  };
  MonitoredSession s(chief(g), {std::make_shared<Bad>()});
  EXPECT_THAT(error_of([&] { s.close(); }), HasSubstr("in end"));
  EXPECT_TRUE(s.should_stop());
  EXPECT_FALSE(g.finalized());
}

TEST_F(Monitored, AThreadsErrorStopsAndComesOutOfClose) {
  MonitoredSession s(chief(g));
  s.coordinator().request_stop(std::make_exception_ptr(Error(Code::kInternal, "thread died")));
  EXPECT_TRUE(s.should_stop());
  EXPECT_THAT(error_of([&] { s.close(); }), HasSubstr("thread died"));
}

TEST_F(Monitored, ACoordinatorThatStoppedStopsTheLoop) {
  MonitoredSession s(chief(g));
  s.coordinator().request_stop();
  EXPECT_TRUE(s.should_stop());
  EXPECT_NO_THROW(s.close());
}

class Recovery : public Monitored {
 protected:
  TempDir dir;
  std::shared_ptr<SessionCreator> creator() { return chief(g, {.checkpoint_dir = dir.str()}); }
  std::shared_ptr<CheckpointSaverHook> saver(std::shared_ptr<Scaffold> scaffold, int64_t every) {
    return std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{
        .checkpoint_dir = dir.str(), .save_steps = every, .scaffold = std::move(scaffold)});
  }
};

TEST_F(Recovery, ALostRuntimeIsMadeAgainAndTheRunTriedAgain) {
  for (Code code : {Code::kAborted, Code::kUnavailable}) {
    auto faults = std::make_shared<Faults>(std::map<int, Code>{{3, code}});
    MonitoredSession s(chief(g), {faults});
    EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 1);
    EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 2);
    EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 1);  // nothing was saved: initialised again
    EXPECT_EQ(faults->begins, 1);
    EXPECT_EQ(faults->sessions, 2);
    EXPECT_EQ(faults->runs, 4);
    s.close();
    EXPECT_EQ(faults->ends, 1);
  }
}

TEST_F(Recovery, TheChiefGoesBackToTheLatestCheckpoint) {
  auto scaffold = std::make_shared<Scaffold>();
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{6, Code::kAborted}});
  MonitoredSession s(chief(g, {.scaffold = scaffold, .checkpoint_dir = dir.str()}),
                     {saver(scaffold, 2), faults});
  std::vector<int64_t> steps;
  for (int i = 0; i < 7; ++i) steps.push_back(s.run({train_op})[0].item<int64_t>());
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 5, 6));
}

TEST_F(Recovery, StopAtStepIsNotExtendedByARecovery) {
  auto scaffold = std::make_shared<Scaffold>();
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{4, Code::kAborted}});
  auto stop = std::make_shared<StopAtStepHook>(StopAtStepOptions{.num_steps = 5});
  MonitoredSession s(chief(g, {.scaffold = scaffold, .checkpoint_dir = dir.str()}),
                     {stop, saver(scaffold, 2), faults});
  int64_t last = 0;
  while (!s.should_stop()) last = s.run({train_op})[0].item<int64_t>();
  EXPECT_EQ(last, 5);
  EXPECT_EQ(stop->last_step(), 5);
}

TEST_F(Recovery, OtherErrorsAreTheCallers) {
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{1, Code::kInternal}});
  MonitoredSession s(chief(g), {faults});
  EXPECT_THAT(error_of([&] { s.run({train_op}); }), HasSubstr("injected"));
  EXPECT_EQ(faults->sessions, 1);
}

TEST_F(Recovery, CreatingASessionIsTriedAgain) {
  struct Flaky final : SessionCreator {
    explicit Flaky(Graph& g) : inner(g) {}
    std::unique_ptr<Session> create_session() override {
      if (++tries < 3) throw_error(tries == 1 ? Code::kAborted : Code::kUnavailable, "not yet");
      return inner.create_session();
    }
    Graph& graph() override { return inner.graph(); }
    ChiefSessionCreator inner;
    int tries = 0;
  };
  auto flaky = std::make_shared<Flaky>(g);
  MonitoredSession s(flaky);
  EXPECT_EQ(flaky->tries, 3);
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 1);
}

TEST_F(Recovery, ShouldStopRecoversFromAThreadsPreemption) {
  auto faults = std::make_shared<Faults>(std::map<int, Code>{});
  MonitoredSession s(chief(g), {faults});
  s.coordinator().request_stop(std::make_exception_ptr(Error(Code::kAborted, "gone")));
  EXPECT_FALSE(s.should_stop());
  EXPECT_EQ(faults->sessions, 2);
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 1);
  EXPECT_NO_THROW(s.close());
}

TEST_F(Recovery, AThreadsPreemptionCountsMoreThanTheRunsOwnError) {
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{1, Code::kCancelled}});
  MonitoredSession s(chief(g), {faults});
  s.coordinator().request_stop(std::make_exception_ptr(Error(Code::kUnavailable, "gone")));
  EXPECT_EQ(s.run({train_op})[0].item<int64_t>(), 1);
  EXPECT_EQ(faults->sessions, 2);
}

TEST_F(Recovery, ASingularSessionHasNone) {
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{1, Code::kAborted}});
  SingularMonitoredSession s(g, {faults});
  EXPECT_THAT(error_of([&] { s.run({train_op}); }), HasSubstr("injected"));
  s.coordinator().request_stop(std::make_exception_ptr(Error(Code::kInternal, "thread died")));
  EXPECT_THAT(error_of([&] { s.should_stop(); }), HasSubstr("thread died"));
}

class StepFn : public Monitored {};

TEST_F(StepFn, ReturnsWhatItReturnsAndRunsWithHooksOrWithout) {
  MonitoredSession s(chief(g), {recorder("a")});
  calls.clear();
  const int64_t raw =
      s.run_step_fn([&](StepContext& c) { return c.session().run({train_op})[0].item<int64_t>(); });
  EXPECT_EQ(raw, 1);
  EXPECT_THAT(calls, IsEmpty());
  s.run_step_fn([&](StepContext& c) { EXPECT_EQ(c.run_with_hooks({train_op})[0].item<int64_t>(), 2); });
  EXPECT_THAT(calls, ElementsAre("a.before_run", "a.after_run"));
}

TEST_F(StepFn, RequestStopEndsTheLoopCleanly) {
  MonitoredSession s(chief(g), {recorder("a")});
  int rounds = 0;
  s.with([&] {
    while (!s.should_stop())
      s.run_step_fn([&](StepContext& c) { ++rounds == 3 ? c.request_stop() : void(); });
  });
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(calls.back(), "a.end");
}

TEST_F(StepFn, IsTriedAgainAfterARecovery) {
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{1, Code::kAborted}});
  MonitoredSession s(chief(g), {faults});
  int tries = 0;
  const auto last = s.run_step_fn([&](StepContext& c) {
    ++tries;
    return c.run_with_hooks({train_op})[0].item<int64_t>();
  });
  EXPECT_EQ(last, 1);
  EXPECT_EQ(tries, 2);
}

class TrainingSession : public Monitored {
 protected:
  TempDir dir;
  // Notes begin as a log line, among those of the hooks that the session brings along.
  struct Says final : SessionRunHook {
    explicit Says(std::string n) : name(std::move(n)) {}
    void after_create_session(Session&, Coordinator&) override { log_info("hook ", name); }
    void after_run(SessionRunContext&, const SessionRunValues&) override { log_info("ran ", name); }
    std::string name;
  };
};

TEST_F(TrainingSession, TheChiefsHooksStandBetweenChiefOnlyAndUsers) {
  LogCapture log;
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  o.chief_only_hooks = {std::make_shared<Says>("chief")};
  o.hooks = {std::make_shared<Says>("user")};
  MonitoredTrainingSession s(g, o);
  std::vector<std::string> order;
  for (const std::string& l : log.lines)
    if (l.rfind("hook ", 0) == 0 || l.rfind("Saving checkpoints", 0) == 0) order.push_back(l);
  EXPECT_THAT(order, ElementsAre("hook chief", HasSubstr("Saving checkpoints for 0 into"), "hook user"));
}

TEST_F(TrainingSession, DefaultsAre100StepsAnd600Seconds) {
  ManualClock clock;
  summary::scalar("s", constant(g, 1.0));
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  o.clock = &clock;
  MonitoredTrainingSession s(g, o);
  for (int i = 0; i < 250; ++i) {
    if (i == 200) clock.advance(599);
    if (i == 220) clock.advance(1);
    s.run({train_op});
  }
  s.close();
  EXPECT_TRUE(dir.has("model.ckpt-0.index"));
  EXPECT_TRUE(dir.has("model.ckpt-221.index"));
  std::vector<int64_t> steps;
  for (const auto& p : scalars_in(dir.str(), "s")) steps.push_back(p.first);
  EXPECT_THAT(steps, ElementsAre(1, 101, 201));
  EXPECT_EQ(scalars_in(dir.str(), "global_step/sec").size(), 1u);  // at 101; 201 passed in no time at all
}

TEST_F(TrainingSession, OneSettingSwitchesItsSiblingsDefaultOff) {
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  o.save_checkpoint_steps = 2;
  o.save_summaries_steps = Setting::off();
  summary::scalar("s", constant(g, 1.0));
  MonitoredTrainingSession s(g, o);
  for (int i = 0; i < 4; ++i) s.run({train_op});
  s.close();
  EXPECT_TRUE(dir.has("model.ckpt-2.index"));
  EXPECT_THAT(scalars_in(dir.str(), "s"), IsEmpty());
}

TEST_F(TrainingSession, OffSwitchesSavingOff) {
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  o.save_checkpoint_secs = Setting::off();
  MonitoredTrainingSession s(g, o);
  s.run({train_op});
  s.close();
  EXPECT_FALSE(dir.has("checkpoint"));
}

TEST_F(TrainingSession, SecondsAndStepsTogetherAreRefused) {  // T03
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  o.save_checkpoint_steps = 5;
  o.save_checkpoint_secs = 600;
  EXPECT_THAT(error_of([&] { MonitoredTrainingSession s(g, o); }),
              HasSubstr("Can not provide both every_secs and every_steps."));
}

TEST_F(TrainingSession, SummariesMayGoElsewhere) {
  TempDir other;
  summary::scalar("s", constant(g, 1.0));
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  o.summary_dir = other.str();
  MonitoredTrainingSession s(g, o);
  s.run({train_op});
  s.close();
  EXPECT_EQ(scalars_in(other.str(), "s").size(), 1u);
  EXPECT_THAT(scalars_in(dir.str(), "s"), IsEmpty());
}

TEST_F(TrainingSession, AWorkerHasTheUsersHooksOnly) {
  runtime::local_master("worker_hooks");
  auto master = runtime::local_master("worker_hooks");
  Session chief_session(g, {.resources = master});
  Node& init = global_variables_initializer(g);
  chief_session.run({}, {}, {&init});
  MonitoredTrainingSessionOptions o;
  o.master = "local:worker_hooks";
  o.is_chief = false;
  o.checkpoint_dir = dir.str();
  o.chief_only_hooks = {recorder("chief")};
  o.hooks = {recorder("user")};
  MonitoredTrainingSession s(g, o);
  s.run({train_op});
  s.close();
  EXPECT_THAT(calls, ElementsAre("user.begin", "user.after_create_session", "user.before_run",
                                 "user.after_run", "user.end"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.str()));
}

TEST_F(TrainingSession, AStepWithNoHookDueAllocatesNoBuffers) {
  summary::scalar("s", constant(g, 1.0));
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir.str();
  MonitoredTrainingSession s(g, o);
  std::vector<Array> results;
  const std::vector<Output> fetches{train_op};
  for (int i = 0; i < 3; ++i) s.run_into(results, fetches);
  const int64_t before = runtime::allocation_count();
  for (int i = 0; i < 50; ++i) s.run_into(results, fetches);
  EXPECT_EQ(runtime::allocation_count(), before);
  EXPECT_EQ(results[0].item<int64_t>(), 53);
}

TEST_F(TrainingSession, ArraysTheCallerKeepsAreNotOverwritten) {
  MonitoredSession s(chief(g), {recorder("a", {.fetches = {train_op}})});
  Array first = s.run({train_op})[0];
  s.run({train_op});
  EXPECT_EQ(first.item<int64_t>(), 1);
}

}  // namespace
}  // namespace sluice::dsl::train
