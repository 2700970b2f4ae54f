#include "dsl/train/more_hooks.h"

#include <csignal>
#include <limits>

#include "dsl/train/monitored_session.h"
#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class MoreHooks : public ::testing::Test, protected Counting {
 protected:
  TempDir dir;
  ManualClock clock;
  int64_t run(Hooks hooks, double secs_a_step = 1) {
    MonitoredSession s(chief(g), std::move(hooks), {.clock = &clock});
    int64_t last = 0;
    s.with([&] {
      while (!s.should_stop()) {
        clock.advance(secs_a_step);
        last = s.run({train_op})[0].item<int64_t>();
      }
    });
    return last;
  }
};

TEST_F(MoreHooks, ProgressIsABarOnATerminal) {
  std::vector<std::string> out;
  auto hook = std::make_shared<ProgressHook>(
      ProgressOptions{.last_step = 10,
                      .loss = train_op,
                      .every = {.steps = 5},
                      .terminal = true,
                      .out = [&](std::string_view s) { out.emplace_back(s); }});
  run({hook, stop_at(10)}, 2);
  ASSERT_GE(out.size(), 3u);
  EXPECT_THAT(out[0], AllOf(StartsWith("\r["), HasSubstr("5/10  50%  0.5 steps/s  0:10 left  loss 5")));
  EXPECT_THAT(out[0], HasSubstr("===============>"));
  EXPECT_EQ(out.back(), "\n");
  EXPECT_THAT(out[out.size() - 2], AllOf(HasSubstr("10/10  100%"), Not(HasSubstr("left"))));
}

TEST_F(MoreHooks, ProgressIsPlainLinesElsewhere) {
  std::string out;
  auto hook = std::make_shared<ProgressHook>(
      ProgressOptions{.line_secs = 3, .terminal = false, .out = [&](std::string_view s) { out += s; }});
  run({hook, stop_at(7)});
  EXPECT_EQ(out, "step 3  1.0 steps/s\nstep 6  1.0 steps/s\nstep 7  1.0 steps/s\n");
}

TEST_F(MoreHooks, StopsEarlyWhenNothingGetsBetter) {
  Tensor fed = placeholder(g, DType::kFloat, {}, "fed"), metric = identity(fed, "metric");
  std::vector<float> values{5, 4, 4, 3.5f, 3.6f, 3.7f, std::numeric_limits<float>::quiet_NaN(), 1};
  size_t at = 0;
  auto feed = std::make_shared<FeedFnHook>([&] {
    return std::vector<Feed>{{fed, Array::scalar(values[at++])}};
  });
  auto hook = std::make_shared<EarlyStoppingHook>(
      EarlyStoppingOptions{.metric = metric, .every = {.steps = 1}, .patience = 3});
  EXPECT_EQ(run({hook, feed}), 7);
  EXPECT_TRUE(hook->stopped());
  EXPECT_EQ(hook->best(), 3.5);
  EXPECT_EQ(hook->best_step(), 4);
}

TEST_F(MoreHooks, EarlyStoppingCountsOnlyRealImprovementsAndMayAskAFunction) {
  auto hook = std::make_shared<EarlyStoppingHook>(EarlyStoppingOptions{
      .evaluate = [](Session&, int64_t step) { return 1.0 + 0.01 * static_cast<double>(step); },
      .every = {.steps = 2},
      .patience = 2,
      .min_delta = 0.5,
      .higher_is_better = true,
      .min_steps = 20});
  const int64_t last = run({hook});
  EXPECT_GE(last, 20);
  EXPECT_LE(last, 22);
  EXPECT_LT(hook->best_step(), 3);
}

TEST_F(MoreHooks, EarlyStoppingNeedsANumber) {
  EXPECT_THAT(error_of([] { EarlyStoppingHook h(EarlyStoppingOptions{}); }),
              HasSubstr("exactly one of metric and evaluate"));
}

TEST_F(MoreHooks, ExportsTheBestCheckpoint) {
  std::vector<double> metrics{5, 3, 4, 2, 6};
  size_t at = 0;
  BestCheckpointOptions best{.export_dir = dir / "best",
                             .metric = [&](Session&, int64_t) { return metrics[at++]; }};
  auto exporter = std::make_shared<BestCheckpointExporter>(best);
  auto saver = std::make_shared<CheckpointSaverHook>(
      CheckpointSaverOptions{.checkpoint_dir = dir / "run", .save_steps = 2, .listeners = {exporter}});
  run({stop_at(8), saver});  // saves at 0, 2, 4, 6, 8
  EXPECT_EQ(exporter->best(), 2);
  EXPECT_EQ(latest_checkpoint(dir / "best"), dir / "best/model.ckpt-6");
  EXPECT_FALSE(dir.has("best/model.ckpt-2.index"));  // max_to_keep 1
  // The copy restores, and a new process remembers what was best.
  Saver reader(g, {.name = "reader"});
  Session s(g);
  reader.restore(s, dir / "best/model.ckpt-6");
  EXPECT_EQ(global_step(s, step), 6);
  EXPECT_EQ(BestCheckpointExporter(best).best(), 2);
}

TEST_F(MoreHooks, StopsAtATimeLimit) {
  EXPECT_EQ(run({std::make_shared<TimeLimitHook>(4.5)}), 5);
  EXPECT_THAT(error_of([] { TimeLimitHook h(0); }), HasSubstr("must be positive"));
}

TEST_F(MoreHooks, ReportsMemoryAndThroughput) {
  auto hook = std::make_shared<ResourceUsageHook>(
      ResourceUsageOptions{.every = {.steps = 4}, .batch_size = 32, .output_dir = dir.str()});
  LogCapture log;
  run({hook, stop_at(9)}, 0.5);
  FileWriterCache::get(dir.str())->flush();
  EXPECT_EQ(log.count("2.0 steps/sec, 64.0 examples/sec, memory "), 2);
  EXPECT_THAT(scalars_in(dir.str(), "usage/examples_per_sec"),
              ElementsAre(std::pair<int64_t, float>(5, 64.0f), std::pair<int64_t, float>(9, 64.0f)));
  EXPECT_EQ(scalars_in(dir.str(), "usage/memory_bytes").size(), 2u);
}

TEST_F(MoreHooks, MemoryIsThatOfTheProcess) {
  const MemoryUse m = memory_use();
  EXPECT_GT(m.now, 1 << 20);
  EXPECT_GE(m.peak, m.now / 2);
}

TEST_F(MoreHooks, ASignalStopsAfterTheStep) {
  struct sigaction before {
  }, after{};
  sigaction(SIGTERM, nullptr, &before);
  {
    auto hook = std::make_shared<StopOnSignalHook>();
    auto kill = std::make_shared<AfterRun>([](SessionRunContext&) { ::raise(SIGTERM); });
    EXPECT_EQ(run({kill, hook}), 1);
    EXPECT_EQ(hook->signal(), SIGTERM);
  }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);  // given back
}

}  // namespace
}  // namespace sluice::dsl::train
