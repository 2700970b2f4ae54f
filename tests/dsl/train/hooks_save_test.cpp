#include <fstream>

#include "dsl/train/hooks.h"
#include "dsl/train/monitored_session.h"
#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class SaveHooks : public ::testing::Test, protected Counting {
 protected:
  TempDir dir;
  ManualClock clock;
  std::shared_ptr<Scaffold> scaffold = std::make_shared<Scaffold>();
  CheckpointSaverOptions every(int64_t steps) {
    return {.checkpoint_dir = dir.str(), .save_steps = steps, .scaffold = scaffold};
  }
  void run(Hooks hooks, const std::string& restore_from = {}) {
    MonitoredSession s(chief(g, {.scaffold = scaffold, .checkpoint_dir = restore_from}), std::move(hooks),
                       {.clock = &clock});
    while (!s.should_stop()) {
      s.run({train_op});
      clock.advance(1);
    }
    s.close();
  }
  // Steps that were saved, by the log's lines.
  std::vector<int64_t> saves(const LogCapture& log) {
    std::vector<int64_t> out;
    for (const auto& l : log.lines)
      if (l.rfind("Saving checkpoints for ", 0) == 0) out.push_back(std::stoll(l.substr(23)));
    return out;
  }
};

struct Listener final : CheckpointSaverListener {
  explicit Listener(std::vector<std::string>& c) : calls(c) {}
  void begin() override { calls.push_back("begin"); }
  void before_save(Session&, int64_t step) override { calls.push_back(cat("before ", step)); }
  bool after_save(Session&, int64_t step, const std::string& path) override {
    calls.push_back(cat("after ", step));
    existed = checkpoint_exists(path);
    return step == stop_at_step;
  }
  void end(Session&, int64_t step) override { calls.push_back(cat("end ", step)); }
  std::vector<std::string>& calls;
  int64_t stop_at_step = -1;
  bool existed = false;
};

TEST_F(SaveHooks, SavesAtTheStartByItsTimerAndAtTheEndOnceEach) {  // S13
  LogCapture log;
  run({stop_at(8), std::make_shared<CheckpointSaverHook>(every(4))});
  EXPECT_THAT(saves(log), ElementsAre(0, 4, 8));
  log.lines.clear();
  TempDir other;
  auto o = every(5);
  o.checkpoint_dir = other.str();
  run({stop_at(12), std::make_shared<CheckpointSaverHook>(o)});
  EXPECT_THAT(saves(log), ElementsAre(0, 5, 10, 12));
}

TEST_F(SaveHooks, SavesBySeconds) {
  LogCapture log;
  run({stop_at(7), std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{
                       .checkpoint_dir = dir.str(), .save_secs = 3, .scaffold = scaffold})});
  EXPECT_THAT(saves(log), ElementsAre(0, 4, 7));
}

TEST_F(SaveHooks, WritesTheGraphAndItsEvents) {
  run({stop_at(2), std::make_shared<CheckpointSaverHook>(every(10))});
  EXPECT_TRUE(dir.has("graph.pbtxt"));
  EXPECT_TRUE(dir.has("model.ckpt-2.meta"));
  int graphs = 0, metas = 0;
  for (const auto& e : events_in(dir.str())) {
    graphs += e.kind == runtime::io::Event::Kind::kGraphDef;
    metas += e.kind == runtime::io::Event::Kind::kMetaGraphDef;
  }
  EXPECT_EQ(graphs, 1);
  EXPECT_EQ(metas, 1);
  EXPECT_THAT(session_logs_in(dir.str(), SessionLog::Status::kCheckpoint), ElementsAre(0, 2));
  for (const auto& e : events_in(dir.str())) {
    if (e.kind == runtime::io::Event::Kind::kSessionLog) {
      EXPECT_THAT(e.session_log.checkpoint_path, ::testing::EndsWith("/model.ckpt"));  // no step suffix
    }
  }
}

TEST_F(SaveHooks, TellsListenersAndHeedsThem) {
  std::vector<std::string> calls;
  auto listener = std::make_shared<Listener>(calls);
  listener->stop_at_step = 4;
  auto o = every(2);
  o.listeners = {listener};
  run({std::make_shared<CheckpointSaverHook>(o)});
  EXPECT_THAT(calls, ElementsAre("begin", "before 0", "after 0", "before 2", "after 2", "before 4", "after 4",
                                 "end 4"));
  EXPECT_TRUE(listener->existed);
}

TEST_F(SaveHooks, AListenersStopIsNotHeardAtTheFirstSave) {
  std::vector<std::string> calls;
  auto listener = std::make_shared<Listener>(calls);
  listener->stop_at_step = 0;
  auto o = every(2);
  o.listeners = {listener};
  run({stop_at(3), std::make_shared<CheckpointSaverHook>(o)});
  EXPECT_EQ(calls.back(), "end 3");
}

TEST_F(SaveHooks, RefusesSaverAndScaffoldTogether) {
  auto o = every(1);
  o.saver = std::make_shared<Saver>(g);
  EXPECT_THAT(error_of([&] { CheckpointSaverHook h(o); }),
              HasSubstr("You cannot provide both saver and scaffold."));
}

TEST_F(SaveHooks, TakesTheGraphsSaverWhereNoneIsGiven) {
  auto o = every(10);
  o.scaffold = nullptr;
  run({stop_at(1), std::make_shared<CheckpointSaverHook>(o)});  // the session's scaffold added its own
  EXPECT_TRUE(dir.has("model.ckpt-1.index"));
}

TEST_F(SaveHooks, ASecondHookOnTheDirectoryIsRefused) {  // S13
  auto a = std::make_shared<CheckpointSaverHook>(every(4)),
       b = std::make_shared<CheckpointSaverHook>(every(3));
  EXPECT_THAT(error_of([&] {
                run({a, b});
              }),
              AllOf(HasSubstr("Two CheckpointSaverHooks save to"), HasSubstr(dir.str())));
  EXPECT_NO_THROW(run({stop_at(1), a}));  // one after the other is fine
  EXPECT_NO_THROW(run({stop_at(1), std::make_shared<CheckpointSaverHook>(every(4))}));
}

TEST_F(SaveHooks, WhatWasRestoredIsNotSavedAgain) {
  run({stop_at(4), std::make_shared<CheckpointSaverHook>(every(4))});
  LogCapture log;
  run({stop_at(6), std::make_shared<CheckpointSaverHook>(every(4))}, dir.str());
  EXPECT_THAT(saves(log), ElementsAre(6));
}

TEST_F(SaveHooks, NeedsAStep) {
  Graph empty;
  for (const auto& [hook, name] : std::vector<std::pair<std::shared_ptr<SessionRunHook>, std::string>>{
           {std::make_shared<CheckpointSaverHook>(every(1)), "CheckpointSaverHook"},
           {std::make_shared<SummarySaverHook>(SummarySaverOptions{.save_steps = 1, .scaffold = scaffold}),
            "SummarySaverHook"},
           {std::make_shared<ProfilerHook>(ProfilerOptions{.save_steps = 1}), "ProfilerHook"}}) {
    EXPECT_THAT(error_of([&, hook = hook] { MonitoredSession s(chief(empty), {hook}); }),
                HasSubstr(cat("Global step should be created to use ", name, ".")));
  }
}

class SummaryHooks : public SaveHooks {
 protected:
  Tensor summary = summary::scalar("count", cast(step.snapshot(), DType::kFloat));
  std::vector<int64_t> steps(const std::string& tag = "count") {
    std::vector<int64_t> out;
    for (const auto& p : scalars_in(dir.str(), tag)) out.push_back(p.first);
    return out;
  }
};

TEST_F(SummaryHooks, SavesTheFirstRunAndThenByItsTimer) {  // T03: first run, then every third step after it
  run({stop_at(12), std::make_shared<SummarySaverHook>(SummarySaverOptions{
                        .save_steps = 3, .output_dir = dir.str(), .scaffold = scaffold})});
  EXPECT_THAT(steps(), ElementsAre(1, 4, 7, 10));
  EXPECT_THAT(session_logs_in(dir.str(), SessionLog::Status::kStart), ElementsAre(1));
}

TEST_F(SummaryHooks, SavesBySeconds) {
  run({stop_at(6), std::make_shared<SummarySaverHook>(
                       SummarySaverOptions{.save_secs = 2, .output_dir = dir.str(), .scaffold = scaffold})});
  EXPECT_THAT(steps(), ElementsAre(1, 3, 5));
}

TEST_F(SummaryHooks, TakesSeveralSummaryOps) {
  Tensor other = summary::scalar("other", constant(g, 1.0), {.collections = {}});
  run({stop_at(2), std::make_shared<SummarySaverHook>(SummarySaverOptions{
                       .save_steps = 5, .output_dir = dir.str(), .summary_op = {summary, other}})});
  EXPECT_THAT(steps(), ElementsAre(1));
  EXPECT_THAT(steps("other"), ElementsAre(1));
}

TEST_F(SummaryHooks, NeedsOneOfScaffoldAndOp) {
  EXPECT_THAT(error_of([&] { SummarySaverHook h({.save_steps = 1}); }),
              HasSubstr("Exactly one of scaffold or summary_op must be provided."));
  EXPECT_THAT(
      error_of([&] { SummarySaverHook h({.save_steps = 1, .scaffold = scaffold, .summary_op = {summary}}); }),
      HasSubstr("Exactly one of scaffold or summary_op must be provided."));
}

TEST_F(SummaryHooks, TheTrainOpRunsOnceAStep) {  // T03
  int64_t last = 0;
  auto hook = std::make_shared<SummarySaverHook>(
      SummarySaverOptions{.save_steps = 1, .output_dir = dir.str(), .scaffold = scaffold});
  MonitoredSession s(chief(g, {.scaffold = scaffold}), {hook});
  for (int i = 0; i < 5; ++i) last = s.run({train_op})[0].item<int64_t>();
  EXPECT_EQ(last, 5);
}

TEST_F(SummaryHooks, AResumedRunStartsItsEventsBySessionLog) {  // R07
  auto hooks = [&](int64_t last) {
    return Hooks{stop_at(last), std::make_shared<CheckpointSaverHook>(every(5)),
                 std::make_shared<SummarySaverHook>(
                     SummarySaverOptions{.save_steps = 1, .output_dir = dir.str(), .scaffold = scaffold})};
  };
  run(hooks(10));
  FileWriterCache::clear();
  run(hooks(12), dir.str());
  EXPECT_THAT(session_logs_in(dir.str(), SessionLog::Status::kStart), ElementsAre(1, 11));
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST_F(SaveHooks, ProfilesARunNowAndThen) {
  run({stop_at(7),
       std::make_shared<ProfilerHook>(ProfilerOptions{.save_steps = 3, .output_dir = dir.str()})});
  EXPECT_FALSE(dir.has("timeline-1.json"));  // never the first
  std::vector<std::string> tags;
  FileWriterCache::get(dir.str())->flush();
  for (const auto& e : events_in(dir.str()))
    if (e.kind == runtime::io::Event::Kind::kRunMetadata) tags.push_back(e.tag);
  ASSERT_THAT(tags, ::testing::SizeIs(::testing::Ge(2u)));
  for (const std::string& t : tags) {
    EXPECT_THAT(t, StartsWith("step_"));
    std::ifstream in(dir / cat("timeline-", t.substr(5), ".json"));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_THAT(text, HasSubstr("traceEvents"));
  }
}

}  // namespace
}  // namespace sluice::dsl::train
