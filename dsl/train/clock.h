#pragma once
// The one source of time of a training run. Timers, waits and rates ask a Clock, so that a test moves time by
// hand and nothing sleeps. Seconds count from an arbitrary start and never go back, whatever the wall clock
// does. Any thread.

#include <mutex>

namespace sluice::dsl::train {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds.
  virtual double now() = 0;
  virtual void sleep(double seconds) = 0;
  /// The machine's monotonic clock; lives as long as the process.
  static Clock& system();
};

/// Moves when told to: `advance`, or `sleep`, which returns at once.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(double start = 0) : now_(start) {}
  double now() override;
  void sleep(double seconds) override { advance(seconds); }
  void advance(double seconds);

 private:
  std::mutex mutex_;  // guards now_
  double now_;
};

}  // namespace sluice::dsl::train
