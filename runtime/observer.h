#pragma once
// Told about every executed step; what traces and profiles are made of. Called by the threads that run steps,
// possibly several at once, between steps: implementations are quick and never throw.

#include <cstdint>

namespace sluice::runtime {

class Plan;
struct Step;

/// When and where one step ran; times in nanoseconds of std::chrono::steady_clock.
struct StepTime {
  int64_t start_ns = 0, end_ns = 0;
  int thread = 0;  // 0: the caller's
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void run_began(const Plan& plan, int64_t step_id) { (void)plan, (void)step_id; }
  virtual void step_ran(const Plan& plan, const Step& step, const StepTime& time) = 0;
  virtual void run_ended(const Plan& plan, int64_t step_id) { (void)plan, (void)step_id; }
};

}  // namespace sluice::runtime
