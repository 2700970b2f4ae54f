#include "dsl/train/loop.h"

#include <csignal>
#include <thread>

#include "runtime/local_master.h"
#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Train : public ::testing::Test, protected Counting {
 protected:
  TempDir dir;
  TrainOptions no_files(Hooks hooks = {}) {
    TrainOptions o;
    o.hooks = std::move(hooks);
    o.save_checkpoint_secs.reset();
    o.save_summaries_steps.reset();
    return o;
  }
  TrainOptions until(int64_t last) {
    TrainOptions o;
    o.hooks = {stop_at(last)};
    return o;
  }
  // Ends like an input of `n` records.
  Tensor input(int64_t n) {
    Variable left =
        make_variable(g, Literal::scalar<int64_t>(0), "read", {.trainable = false, .use_resource = false});
    return g.add({.op = "CountUpTo", .inputs = {left.handle()}, .attrs = {{"limit", n}}});
  }
};

TEST_F(Train, ReturnsTheLastLoss) {
  const TrainResult r = train(train_op, dir.str(), until(5));
  EXPECT_EQ(r.loss, 5);
  EXPECT_EQ(r.steps, 5);
  EXPECT_EQ(r.signal, 0);
  EXPECT_TRUE(dir.has("model.ckpt-5.index"));
  EXPECT_TRUE(dir.has("graph.pbtxt"));
}

TEST_F(Train, AChiefNeedsALogdirForWhatItWrites) {
  EXPECT_THAT(error_of([&] { train(train_op, ""); }),
              HasSubstr("logdir cannot be None when save_summaries_steps is not None"));
  TrainOptions o;
  o.save_summaries_steps.reset();
  EXPECT_THAT(error_of([&] { train(train_op, "", o); }),
              HasSubstr("logdir cannot be None when save_checkpoint_secs is not None"));
  o.save_summaries_steps = 0;  // 0 is unset
  o.save_checkpoint_secs = 0;
  o.hooks = {stop_at(2)};
  EXPECT_EQ(train(train_op, "", o).loss, 2);
}

TEST_F(Train, WithoutSavingItWritesNoCheckpointsAndNoSummaries) {
  summary::scalar("s", constant(g, 1.0));
  train(train_op, dir.str(), no_files({stop_at(3)}));
  EXPECT_FALSE(dir.has("checkpoint"));
  EXPECT_THAT(scalars_in(dir.str(), "s"), IsEmpty());
}

TEST_F(Train, ResumesWhereItStopped) {
  train(train_op, dir.str(), until(4));
  const TrainResult r = train(train_op, dir.str(), until(7));
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.loss, 7);
}

TEST_F(Train, ResumingAtOrPastTheLastStepRunsNothing) {  // T01
  train(train_op, dir.str(), until(10));
  LogCapture log;
  for (int64_t last : {10, 8}) {
    const TrainResult r = train(train_op, dir.str(), until(last));
    EXPECT_EQ(r.steps, 0);
    EXPECT_FALSE(r.loss);
  }
  EXPECT_EQ(log.count("The global step is 10 and training stops at"), 2);
  EXPECT_EQ(log.count("Saving checkpoints for"), 0);
  EXPECT_THAT(latest_checkpoint(dir.str()), HasSubstr("model.ckpt-10"));
}

TEST_F(Train, ResumingFromSevenRunsThree) {  // T01
  train(train_op, dir.str(), until(7));
  EXPECT_EQ(train(train_op, dir.str(), until(10)).steps, 3);
}

TEST_F(Train, TheEndOfTheInputIsACleanEnd) {
  Tensor record = input(6);
  std::vector<std::string> calls;
  auto recorder = std::make_shared<Recorder>("a", calls);
  Tensor loss = with_dependencies({&record.node()}, train_op);
  TrainOptions o;
  o.hooks = {recorder};
  const TrainResult r = train(loss, dir.str(), o);
  EXPECT_EQ(r.steps, 6);
  ASSERT_TRUE(r.loss);
  EXPECT_EQ(*r.loss, 6);
  EXPECT_EQ(calls.back(), "a.end");
}

TEST_F(Train, AnyOtherErrorGoesOnAndEndIsLeftOut) {
  std::vector<std::string> calls;
  auto recorder = std::make_shared<Recorder>("a", calls);
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{3, Code::kInternal}});
  EXPECT_THAT(error_of([&] {
                train(train_op, dir.str(), no_files({recorder, faults}));
              }),
              HasSubstr("injected"));
  EXPECT_NE(calls.back(), "a.end");
}

TEST_F(Train, ANanLossEndsItWithTheChecksError) {
  Variable w = get_variable(g, "w", {}, {.initializer = ones_initializer()});
  GradientDescentOptimizer opt(1.0);
  Tensor zero = constant(g, 0.0);
  Tensor op = create_train_op(w / zero * zero, opt);
  EXPECT_THAT(error_of([&] { train(op, dir.str(), no_files()); }), HasSubstr("LossTensor is inf or nan"));
}

TEST_F(Train, CountsStepsASecondWithALogdir) {
  train(train_op, dir.str(), until(205));
  EXPECT_EQ(scalars_in(dir.str(), "global_step/sec").size(), 2u);
}

TEST_F(Train, FinalizesTheGraphWhileItRuns) {  // P04
  std::string error;
  auto grows = std::make_shared<AfterRun>([&](SessionRunContext& c) {
    error = error_of([&] { constant(g, 1.0, DType::kFloat, "grown"); });
    c.request_stop();
  });
  train(train_op, dir.str(), no_files({grows}));
  EXPECT_THAT(error, AllOf(HasSubstr("finalized"), HasSubstr("grown")));
}

TEST_F(Train, MemoryStaysFlat) {  // P04
  int64_t early = 0;
  auto watch = std::make_shared<AfterRun>([&](SessionRunContext& c) {
    if (early == 0 && c.session().counters().runs >= 2000) early = memory_use().now;
  });
  TrainOptions o = until(10000);
  o.hooks.push_back(watch);
  train(train_op, dir.str(), o);
  EXPECT_GT(early, 0);
#if !defined(__SANITIZE_ADDRESS__)  // which keeps freed memory on purpose
  EXPECT_LT(memory_use().now - early, 2 << 20);
#endif
}

TEST_F(Train, ChiefAndWorkersShareARuntime) {
  auto master = runtime::local_master("train_test");
  std::atomic<int64_t> steps{0};
  auto work = [&](bool is_chief) {
    Counting own;
    TrainOptions o;
    o.master = "local:train_test";
    o.is_chief = is_chief;
    o.hooks = {stop_at(300)};
    o.on_signal = OnSignal::kIgnore;
    steps += train(own.train_op, dir.str(), o).steps;
  };
  std::thread chief([&] { work(true); }), one([&] { work(false); }), two([&] { work(false); });
  chief.join(), one.join(), two.join();
  // Each worker may be a step on its way when another reaches the last.
  EXPECT_GE(steps, 300);
  EXPECT_LE(steps, 302);
  Session s(g, {.resources = master});
  EXPECT_EQ(global_step(s), steps);
}

TEST_F(Train, OtherMastersAreNotThereYet) {
  TrainOptions o = until(1);
  o.master = "grpc://localhost:2222";
  EXPECT_THAT(error_of([&] { train(train_op, dir.str(), o); }),
              AllOf(HasSubstr("grpc://localhost:2222"), HasSubstr("local:NAME")));
}

TEST_F(Train, RecoversFromALostRuntime) {
  auto faults = std::make_shared<Faults>(std::map<int, Code>{{6, Code::kAborted}});
  TrainOptions o = until(8);
  o.hooks.push_back(faults);
  const TrainResult r = train(train_op, dir.str(), o);
  EXPECT_EQ(r.loss, 8);
  EXPECT_EQ(faults->sessions, 2);
}

TEST_F(Train, ASignalMayReturn) {
  auto kill = std::make_shared<AfterRun>([](SessionRunContext& c) {
    if (c.session().counters().runs > 5) ::raise(SIGTERM);
  });
  std::vector<std::string> calls;
  TrainOptions o;
  o.hooks = {kill, std::make_shared<Recorder>("a", calls)};
  o.on_signal = OnSignal::kReturn;
  const TrainResult r = train(train_op, dir.str(), o);
  EXPECT_EQ(r.signal, SIGTERM);
  EXPECT_EQ(calls.back(), "a.end");
  EXPECT_EQ(latest_checkpoint(dir.str()), dir / cat("model.ckpt-", r.steps));
}

// In a process of its own: what follows a signal is the process's end.
void train_until(int number, const std::string& dir) {
  ::signal(number, SIG_DFL);
  Counting own;
  TrainOptions o;
  o.hooks = {std::make_shared<AfterRun>([number](SessionRunContext&) { ::raise(number); })};
  train(own.train_op, dir, o);
}

using TrainDeathTest = Train;

// The parent looks at what the child left; both know the folder by the signal's number.
void expect_exit(int number, int code, const char* said) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string dir =
      (std::filesystem::temp_directory_path() / cat("sluice_loop_signal_", number)).string();
  std::filesystem::remove_all(dir);
  EXPECT_EXIT(train_until(number, dir), ::testing::ExitedWithCode(code), said);
  EXPECT_EQ(latest_checkpoint(dir), dir + "/model.ckpt-1");
  std::filesystem::remove_all(dir);
}

TEST_F(TrainDeathTest, SigintSavesAndExits130) { expect_exit(SIGINT, 130, "Stopped by signal 2"); }
TEST_F(TrainDeathTest, SigtermSavesAndExits143) { expect_exit(SIGTERM, 143, "Stopped by signal 15"); }

TEST_F(Train, GlobalStepOfASession) {
  Session s(g);
  Node& init = global_variables_initializer(g);
  s.run({}, {}, {&init});
  s.run({train_op});
  EXPECT_EQ(global_step(s), 1);
  EXPECT_EQ(global_step(s, step), 1);
  Graph empty;
  Session none(empty);
  EXPECT_THAT(error_of([&] { global_step(none); }), HasSubstr("no global step"));
}

}  // namespace
}  // namespace sluice::dsl::train
