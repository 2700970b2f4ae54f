#pragma once
// Runs independent steps of a plan at the same time (SessionOptions::inter_op_threads > 1). The caller takes
// part; a step that is alone computes with the whole team, steps side by side compute at width 1, each on its
// own thread. One run at a time; others go in order.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/executor.h"

namespace sluice::runtime {

class StepPool {
 public:
  /// `threads` counts the caller.
  explicit StepPool(int threads);
  ~StepPool();
  StepPool(const StepPool&) = delete;
  StepPool& operator=(const StepPool&) = delete;

  /// False when another run has the pool: nothing was done. Throws the first error.
  bool run(const Plan& plan, RunContext& context, RunEnvironment& env, WorkQueue& serial);

 private:
  void help(int thread);
  // Takes ready steps until none is left to take (helpers) or the run is over (the caller).
  void work(std::unique_lock<std::mutex>& lock, int thread);

  std::mutex busy_;   // held by the run that has the pool
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  const Plan* plan_ = nullptr;
  RunContext* context_ = nullptr;
  RunEnvironment* env_ = nullptr;
  WorkQueue* serial_ = nullptr;
  std::vector<int> ready_;  // a heap, lowest step first
  int running_ = 0, left_ = 0;
  std::exception_ptr error_;
  std::atomic<int> failed_{0};  // ends steps that wait when another has failed
  bool stop_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace sluice::runtime
