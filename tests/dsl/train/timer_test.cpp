#include "dsl/train/timer.h"

#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::HasSubstr;

TEST(Timer, NeedsExactlyOneOfSecsAndSteps) {
  EXPECT_THAT(error_of([] { SecondOrStepTimer t(Every{}); }),
              HasSubstr("Either every_secs or every_steps should be provided."));
  EXPECT_THAT(error_of([] { SecondOrStepTimer t(Every{.secs = 1, .steps = 1}); }),
              HasSubstr("Can not provide both every_secs and every_steps."));
}

TEST(Timer, TriggersWhenItNeverDid) {
  SecondOrStepTimer t({.steps = 10});
  EXPECT_TRUE(t.should_trigger(0));
  EXPECT_FALSE(t.last_triggered_step());
  t.update(0);
  EXPECT_FALSE(t.should_trigger(1));
  t.reset();
  EXPECT_TRUE(t.should_trigger(1));
}

TEST(Timer, NeverTriggersTwiceAtOneStep) {
  ManualClock clock;
  SecondOrStepTimer t({.secs = 1}, clock);
  t.update(5);
  clock.advance(100);
  EXPECT_FALSE(t.should_trigger(5));
  EXPECT_TRUE(t.should_trigger(6));
}

TEST(Timer, BySteps) {
  SecondOrStepTimer t({.steps = 3});
  t.update(2);
  EXPECT_FALSE(t.should_trigger(4));
  EXPECT_TRUE(t.should_trigger(5));
  EXPECT_TRUE(t.should_trigger(9));
}

TEST(Timer, BySecondsExactly) {
  ManualClock clock(50);
  SecondOrStepTimer t({.secs = 2}, clock);
  t.update(0);
  clock.advance(1.5);
  EXPECT_FALSE(t.should_trigger(1));
  clock.advance(0.5);
  EXPECT_TRUE(t.should_trigger(1));
}

TEST(Timer, UpdateGivesWhatPassedButNothingTheFirstTime) {
  ManualClock clock;
  SecondOrStepTimer t({.steps = 1}, clock);
  EXPECT_FALSE(t.update(3));
  clock.advance(4);
  auto since = t.update(10);
  ASSERT_TRUE(since);
  EXPECT_EQ(since->secs, 4);
  EXPECT_EQ(since->steps, 7);
  EXPECT_EQ(t.last_triggered_step(), 10);
}

TEST(Timer, AStepThatGoesBackDoesNotTrigger) {
  SecondOrStepTimer t({.steps = 3});
  t.update(9);
  EXPECT_FALSE(t.should_trigger(6));
}

}  // namespace
}  // namespace sluice::dsl::train
