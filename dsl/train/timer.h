#pragma once
// When a hook acts: every so many seconds or every so many steps (TensorFlow's SecondOrStepTimer,
// graph-and-training §6.5). One thread at a time.
//
//   SecondOrStepTimer timer({.steps = 100}, clock);
//   if (timer.should_trigger(step)) { auto since = timer.update(step); … }

#include <cstdint>
#include <optional>

#include "dsl/train/clock.h"

namespace sluice::dsl::train {

/// One of the two.
struct Every {
  std::optional<double> secs = {};
  std::optional<int64_t> steps = {};
};

class SecondOrStepTimer {
 public:
  struct Elapsed {
    double secs;
    int64_t steps;
  };

  /// InvalidArgument "Either every_secs or every_steps should be provided." or "Can not provide both
  /// every_secs and every_steps."
  explicit SecondOrStepTimer(const Every& every, Clock& clock = Clock::system());

  void use(Clock& clock) { clock_ = &clock; }
  /// As if it had never triggered.
  void reset();
  /// True when it never triggered; false for the step it triggered at last.
  bool should_trigger(int64_t step) const {
    if (!triggered_) return true;
    if (step == last_step_) return false;
    if (every_.steps) return step >= last_step_ + *every_.steps;
    return clock_->now() >= last_time_ + *every_.secs;
  }
  /// Notes that it triggers at `step`; what passed since the last time, nullopt the first time.
  std::optional<Elapsed> update(int64_t step);
  std::optional<int64_t> last_triggered_step() const {
    return triggered_ ? std::optional(last_step_) : std::nullopt;
  }

 private:
  Every every_;
  Clock* clock_;
  bool triggered_ = false;
  int64_t last_step_ = 0;
  double last_time_ = 0;
};

}  // namespace sluice::dsl::train
