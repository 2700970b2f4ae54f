#include "dsl/train/timer.h"

#include "graph/support/check.h"

namespace sluice::dsl::train {

SecondOrStepTimer::SecondOrStepTimer(const Every& every, Clock& clock) : every_(every), clock_(&clock) {
  SLUICE_REQUIRE(every.secs || every.steps, Code::kInvalidArgument,
                 "Either every_secs or every_steps should be provided.");
  SLUICE_REQUIRE(!every.secs || !every.steps, Code::kInvalidArgument,
                 "Can not provide both every_secs and every_steps.");
}

void SecondOrStepTimer::reset() { triggered_ = false; }

std::optional<SecondOrStepTimer::Elapsed> SecondOrStepTimer::update(int64_t step) {
  const double now = clock_->now();
  std::optional<Elapsed> elapsed;
  if (triggered_) elapsed = Elapsed{now - last_time_, step - last_step_};
  triggered_ = true;
  last_step_ = step;
  last_time_ = now;
  return elapsed;
}

}  // namespace sluice::dsl::train
