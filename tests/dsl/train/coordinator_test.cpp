#include "dsl/train/coordinator.h"

#include <future>
#include <thread>

#include "dsl/train/queue_runner.h"
#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::exception_ptr error(Code code, const std::string& text) {
  return std::make_exception_ptr(Error(code, text));
}

TEST(Coordinator, StopsAllThreads) {
  Coordinator coord;
  for (int i = 0; i < 3; ++i) coord.start_thread([&] { coord.wait_for_stop(); });
  EXPECT_FALSE(coord.should_stop());
  coord.request_stop();
  EXPECT_TRUE(coord.should_stop());
  coord.join();
  EXPECT_TRUE(coord.joined());
}

TEST(Coordinator, JoinEndsWhenAllThreadsHaveEndedWithoutAStop) {
  Coordinator coord;
  coord.start_thread([] {});
  coord.join();
  EXPECT_FALSE(coord.should_stop());
}

TEST(Coordinator, KeepsTheFirstExceptionOnly) {
  Coordinator coord;
  coord.request_stop(error(Code::kInternal, "first"));
  coord.request_stop(error(Code::kInternal, "second"));
  EXPECT_THAT(error_of([&] { coord.join(); }), AllOf(HasSubstr("first")));
}

TEST(Coordinator, AnExceptionAfterAStopIsNotKept) {
  Coordinator coord;
  coord.request_stop();
  coord.request_stop(error(Code::kInternal, "late"));
  EXPECT_NO_THROW(coord.join());
}

TEST(Coordinator, CleanKindsAreNotReported) {
  Coordinator coord;
  coord.request_stop(error(Code::kOutOfRange, "end"));
  EXPECT_TRUE(coord.should_stop());
  EXPECT_NO_THROW(coord.join());
  Coordinator strict{std::vector<Code>{}};
  strict.request_stop(error(Code::kOutOfRange, "end"));
  EXPECT_THAT(error_of([&] { strict.join(); }), HasSubstr("end"));
}

TEST(Coordinator, AThreadsExceptionStopsTheOthersAndComesOutOfJoin) {
  Coordinator coord;
  coord.start_thread([&] { coord.wait_for_stop(); });
  coord.start_thread([] { throw_error(Code::kInternal, "broken"); });
  EXPECT_THAT(error_of([&] { coord.join(); }), HasSubstr("broken"));
}

TEST(Coordinator, RaisesOnRequest) {
  Coordinator coord;
  EXPECT_NO_THROW(coord.raise_requested_exception());
  coord.request_stop(error(Code::kAborted, "gone"));
  EXPECT_THAT(error_of([&] { coord.raise_requested_exception(); }), HasSubstr("gone"));
}

TEST(Coordinator, StragglersAreAnErrorOrALogLine) {
  std::promise<void> go;
  auto wait = go.get_future().share();
  Coordinator coord;
  coord.start_thread([wait] { wait.wait(); });
  coord.request_stop();
  EXPECT_THAT(error_of([&] { coord.join({.stop_grace_period_secs = 0.01}); }),
              HasSubstr("Coordinator stopped with threads still running: 1"));
  LogCapture log;
  EXPECT_NO_THROW(coord.join({.stop_grace_period_secs = 0.01, .ignore_live_threads = true}));
  EXPECT_EQ(log.count("Coordinator stopped with threads still running"), 1);
  go.set_value();
}

TEST(Coordinator, AfterJoinAnExceptionIsThrownAtOnce) {
  Coordinator coord;
  coord.join();
  EXPECT_THAT(error_of([&] { coord.request_stop(error(Code::kInternal, "nobody listens")); }),
              HasSubstr("nobody listens"));
}

TEST(Coordinator, ClearStopForgets) {
  Coordinator coord;
  coord.request_stop(error(Code::kInternal, "x"));
  coord.clear_stop();
  EXPECT_FALSE(coord.should_stop());
  EXPECT_NO_THROW(coord.join());
}

TEST(Coordinator, StopOnExceptionReportsInsteadOfThrowing) {
  Coordinator coord;
  coord.stop_on_exception([] { throw_error(Code::kInternal, "inside"); });
  EXPECT_TRUE(coord.should_stop());
  EXPECT_THAT(error_of([&] { coord.join(); }), HasSubstr("inside"));
}

TEST(Coordinator, WaitForStopTimesOut) {
  Coordinator coord;
  EXPECT_FALSE(coord.wait_for_stop(0.001));
  coord.request_stop();
  EXPECT_TRUE(coord.wait_for_stop(0.001));
}

// A variable that counts up to a limit stands for a queue that is fed: its end is OutOfRange.
class Runner : public ::testing::Test {
 protected:
  Graph g;
  Variable count(const std::string& name, bool resource = false) {
    return make_variable(g, Literal::scalar<int64_t>(0), name,
                         {.trainable = false, .use_resource = resource});
  }
  Node& up_to(const Variable& v, int64_t limit) {
    return g.add({.op = "CountUpTo", .inputs = {v.handle()}, .attrs = {{"limit", limit}}});
  }
  int64_t value(Session& s, const Variable& v) { return s.run({v.snapshot()})[0].item<int64_t>(); }
  Variable a = count("a"), b = count("b"), closed = count("closed"), cancelled = count("cancelled");
  Node& close_op = assign_add_op(closed, 1);
  Node& cancel_op = assign_add_op(cancelled, 1);
};

TEST_F(Runner, TheLastThreadThatSeesTheEndClosesTheQueue) {
  QueueRunner runner("queue", {&up_to(a, 3), &up_to(b, 5)}, {.close = &close_op});
  Node& init = global_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  Coordinator coord;
  runner.create_threads(s, coord);
  coord.join();
  EXPECT_EQ(value(s, a), 3);
  EXPECT_EQ(value(s, b), 5);
  EXPECT_EQ(value(s, closed), 1);
}

TEST_F(Runner, AStopRunsTheCancelOp) {
  QueueRunner runner("queue", {&up_to(a, int64_t{1} << 60)}, {.close = &close_op, .cancel = &cancel_op});
  Node& init = global_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  Coordinator coord;
  runner.create_threads(s, coord);
  coord.request_stop();
  coord.join();
  EXPECT_EQ(value(s, cancelled), 1);
  EXPECT_EQ(value(s, closed), 0);
}

TEST_F(Runner, OtherErrorsStopTheCoordinator) {
  Node& bad = assert_that(constant(g, Literal::scalar(false)), {constant(g, 7)});
  QueueRunner runner("queue", {&bad}, {.close = &close_op});
  Session s(g);
  Coordinator coord;
  runner.create_threads(s, coord);
  EXPECT_THAT(error_of([&] { coord.join(); }), HasSubstr("assertion failed"));
}

TEST_F(Runner, ChosenErrorsCountAsTheEnd) {
  Node& bad = assert_that(constant(g, Literal::scalar(false)), {constant(g, 7)});
  QueueRunner runner("queue", {&bad},
                     {.close = &close_op, .queue_closed_exceptions = {Code::kInvalidArgument}});
  Node& init = global_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  Coordinator coord;
  runner.create_threads(s, coord);
  EXPECT_NO_THROW(coord.join());
  EXPECT_EQ(value(s, closed), 1);
}

TEST_F(Runner, StartsOnceASession) {
  QueueRunner runner("queue", {&up_to(a, int64_t{1} << 60)}, {.cancel = &cancel_op});
  Node& init = global_variables_initializer(g);
  Session s(g);
  s.run({}, {}, {&init});
  Coordinator coord;
  runner.create_threads(s, coord);
  runner.create_threads(s, coord);
  coord.request_stop();
  coord.join();
  EXPECT_EQ(value(s, cancelled), 1);  // one closer
}

TEST_F(Runner, TravelsInTheCollectionAsAQueueRunnerDef) {
  QueueRunner runner(
      "queue", {&up_to(a, 3), &up_to(b, 3)},
      {.close = &close_op, .cancel = &cancel_op, .queue_closed_exceptions = {Code::kCancelled}});
  QueueRunner back = QueueRunner::from_def(g, runner.to_def());
  EXPECT_EQ(back.name(), "queue");
  EXPECT_EQ(back.enqueue_ops(), runner.enqueue_ops());
  EXPECT_EQ(back.ops().close, &close_op);
  EXPECT_EQ(back.ops().cancel, &cancel_op);
  EXPECT_THAT(back.ops().queue_closed_exceptions, ::testing::ElementsAre(Code::kCancelled));
}

TEST_F(Runner, RefusesEmptyLists) {
  EXPECT_THAT(error_of([] { QueueRunner r("q", {}, {}); }), HasSubstr("Must provide queue and enqueue_ops."));
}

TEST_F(Runner, MonitoredSessionsStartTheGraphsRunners) {
  add_queue_runner(g, QueueRunner("queue", {&up_to(a, 4)}, {.close = &close_op}));
  SingularMonitoredSession s(g);
  while (value(s.raw_session(), closed) == 0) std::this_thread::yield();
  EXPECT_EQ(value(s.raw_session(), a), 4);
}

}  // namespace
}  // namespace sluice::dsl::train
