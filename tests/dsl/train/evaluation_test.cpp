#include "dsl/train/evaluation.h"

#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Evaluate : public ::testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  // Checkpoints whose step is their number.
  void checkpoints(std::vector<int64_t> steps) {
    Counting c;
    Saver saver(c.g);
    Tensor value = placeholder(c.g, DType::kInt64, {});
    Node& set = assign_op(c.step, value);
    Session s(c.g);
    for (int64_t n : steps) {
      s.run({}, {{value, Array::scalar(n)}}, {&set});
      saver.save(s, dir / "model.ckpt", n);
    }
  }
  Graph g;
  Variable step = get_or_create_global_step(g);
  // A metric over a local variable: evaluation steps so far times the restored step.
  Variable total = make_variable(g, Literal::scalar<int64_t>(0), "total",
                                 {.trainable = false, .collections = {graph::keys::kLocalVariables}});
  Tensor update = assign_add(total, step.value());
};

TEST_F(Evaluate, WaitsForANewCheckpoint) {
  EXPECT_FALSE(wait_for_new_checkpoint(dir.str(), "", 1, 5, clock));
  EXPECT_EQ(clock.now(), 5);
  checkpoints({3});
  const std::string path = dir / "model.ckpt-3";
  EXPECT_EQ(wait_for_new_checkpoint(dir.str(), "", 1, 5, clock), path);
  EXPECT_FALSE(wait_for_new_checkpoint(dir.str(), path, 1, 2, clock));
  EXPECT_EQ(clock.now(), 7);
}

TEST_F(Evaluate, IteratesOverNewCheckpoints) {
  checkpoints({1});
  CheckpointsIterator it(dir.str(), {.min_interval_secs = 10, .timeout_secs = 3, .clock = &clock});
  EXPECT_EQ(it.next(), dir / "model.ckpt-1");
  checkpoints({2});
  EXPECT_EQ(it.next(), dir / "model.ckpt-2");
  EXPECT_EQ(clock.now(), 10);  // the interval between them
  LogCapture log;
  EXPECT_FALSE(it.next());
  EXPECT_EQ(log.count("Timed-out waiting for a checkpoint."), 1);
}

TEST_F(Evaluate, ATimeoutFunctionMayWaitOn) {
  int asked = 0;
  CheckpointsIterator it(dir.str(),
                         {.timeout_secs = 3, .timeout_fn = [&] { return ++asked == 2; }, .clock = &clock});
  EXPECT_FALSE(it.next());
  EXPECT_EQ(asked, 2);
}

TEST_F(Evaluate, OnceRunsTheOpsAndReadsTheFinalOnes) {
  checkpoints({5});
  auto stop = std::make_shared<StopAfterNEvalsHook>(4);
  LogCapture log;
  auto values = evaluate_once(
      g, dir / "model.ckpt-5",
      {.eval_ops = {update}, .final_ops = {total.snapshot(), step.snapshot()}, .hooks = {stop}});
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].item<int64_t>(), 20);
  EXPECT_EQ(values[1].item<int64_t>(), 5);
  EXPECT_EQ(log.count("Evaluation [4/4]"), 1);
}

TEST_F(Evaluate, OnceWithoutEvalOpsReadsTheFinalOnesOnly) {
  checkpoints({5});
  auto values = evaluate_once(g, dir / "model.ckpt-5", {.final_ops = {step.snapshot()}});
  EXPECT_EQ(values[0].item<int64_t>(), 5);
}

TEST_F(Evaluate, TheEndOfTheInputEndsAnEvaluation) {
  checkpoints({2});
  Variable read = make_variable(
      g, Literal::scalar<int64_t>(0), "read",
      {.trainable = false, .collections = {graph::keys::kLocalVariables}, .use_resource = false});
  Node& record = g.add({.op = "CountUpTo", .inputs = {read.handle()}, .attrs = {{"limit", int64_t{3}}}});
  Tensor each;
  {
    graph::ControlDependencies after(g, {&record});
    each = assign_add(total, step.value());
  }
  auto values = evaluate_once(g, dir / "model.ckpt-2", {.eval_ops = {each}, .final_ops = {total.snapshot()}});
  EXPECT_EQ(values[0].item<int64_t>(), 6);
}

TEST_F(Evaluate, RepeatedlyUntilEnough) {
  checkpoints({1, 2});
  auto stop = std::make_shared<StopAfterNEvalsHook>(3, false);
  int rounds = 0;
  EvaluateOptions o;
  o.eval_ops = {update};
  o.final_ops = {total.snapshot()};
  o.hooks = {stop};
  o.timeout_secs = 5;
  o.timeout_fn = [&] {
    if (++rounds == 1) checkpoints({7});
    return rounds > 1;
  };
  o.clock = &clock;
  auto values = evaluate_repeatedly(g, dir.str(), o);
  EXPECT_EQ(values[0].item<int64_t>(), 21);  // the latest checkpoint's, counted from zero again
  EXPECT_EQ(rounds, 2);
  o.max_number_of_evaluations = 1;
  o.timeout_fn = {};
  EXPECT_EQ(evaluate_repeatedly(g, dir.str(), o)[0].item<int64_t>(), 21);
}

TEST_F(Evaluate, LogsEveryTenthOfManySteps) {
  checkpoints({1});
  LogCapture log;
  evaluate_once(g, dir / "model.ckpt-1",
                {.eval_ops = {update}, .hooks = {std::make_shared<StopAfterNEvalsHook>(40)}});
  EXPECT_EQ(log.count("Evaluation ["), 10);
}

TEST_F(Evaluate, WritesSummariesAtItsEnd) {
  checkpoints({9});
  summary::scalar("step", cast(step.snapshot(), DType::kFloat));
  TempDir logs;
  evaluate_once(g, dir / "model.ckpt-9",
                {.hooks = {std::make_shared<SummaryAtEndHook>(SummaryAtEndOptions{.log_dir = logs.str()})}});
  EXPECT_THAT(scalars_in(logs.str(), "step"), ElementsAre(std::pair<int64_t, float>(9, 9.0f)));
}

TEST_F(Evaluate, TheEvalStepIsLocal) {
  Variable e = get_or_create_eval_step(g);
  EXPECT_EQ(e, get_or_create_eval_step(g));
  EXPECT_EQ(e.name(), "eval_step");
  EXPECT_THAT(get_variables(g, graph::keys::kLocalVariables), ::testing::Contains(e));
}

TEST_F(Evaluate, StopAfterNEvalsNeedsACount) {
  EXPECT_THAT(error_of([&] { MonitoredSession s(chief(g), {std::make_shared<StopAfterNEvalsHook>(1)}); }),
              HasSubstr("set_evals_completed"));
}

}  // namespace
}  // namespace sluice::dsl::train
