#include "runtime/step_pool.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace sluice::runtime {

StepPool::StepPool(int threads) {
  for (int t = 1; t < threads; ++t) helpers_.emplace_back([this, t] { help(t); });
}

StepPool::~StepPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : helpers_) t.join();
}

bool StepPool::run(const Plan& plan, RunContext& context, RunEnvironment& env, WorkQueue& serial) {
  std::unique_lock<std::mutex> own(busy_, std::try_to_lock);
  if (!own.owns_lock()) return false;
  std::unique_lock lock(mutex_);
  plan_ = &plan, context_ = &context, env_ = &env, serial_ = &serial;
  failed_.store(0, std::memory_order_relaxed);
  const CancelToken* outer = env.state.cancel;
  const CancelToken token = (outer ? *outer : CancelToken::none()).also(failed_);
  env.state.cancel = &token;
  running_ = 0;
  left_ = static_cast<int>(plan.steps().size());
  error_ = nullptr;
  ready_.clear();
  ready_.reserve(plan.steps().size());
  for (size_t k = 0; k < plan.steps().size(); ++k) {
    context.pending[k] = static_cast<int>(plan.steps()[k].after.size());
    if (context.pending[k] == 0) ready_.push_back(static_cast<int>(k));
  }
  std::make_heap(ready_.begin(), ready_.end(), std::greater<>());
  if (ready_.size() > 1) wake_.notify_all();
  while (left_ > 0 || running_ > 0) {
    work(lock, 0);
    if (left_ > 0 || running_ > 0)
      wake_.wait(lock, [&] { return !ready_.empty() || (running_ == 0 && left_ == 0); });
  }
  plan_ = nullptr;
  env.state.cancel = outer;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return true;
}

void StepPool::work(std::unique_lock<std::mutex>& lock, int thread) {
  while (!ready_.empty()) {
    const bool alone = running_ == 0 && ready_.size() == 1;
    // A step that is alone is the caller's: only it has the team.
    if (alone && thread != 0) {
      wake_.notify_all();
      return;
    }
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    const int k = ready_.back();
    ready_.pop_back();
    ++running_;
    RunEnvironment env = *env_;
    if (!alone) env.queue = serial_;
    if (thread != 0) env.team = nullptr;
    const Plan& plan = *plan_;
    RunContext& context = *context_;
    lock.unlock();
    std::exception_ptr error;
    try {
      Executor::run_step(plan, context, plan.steps()[static_cast<size_t>(k)], env, thread);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --running_;
    --left_;
    if (error) {
      // Nothing more starts; what runs ends, and its errors are only consequences.
      if (!error_) error_ = error;
      failed_.store(1, std::memory_order_release);
      ready_.clear();
      left_ = 0;
    } else if (!error_) {
      for (int s : plan.successors()[static_cast<size_t>(k)])
        if (--context.pending[static_cast<size_t>(s)] == 0) {
          ready_.push_back(s);
          std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
        }
    } else {
      left_ = 0;
    }
    if (!ready_.empty() || (running_ == 0 && left_ == 0)) wake_.notify_all();
  }
}

void StepPool::help(int thread) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Two ready steps, or one beside a running one: work for a helper.
    wake_.wait(lock,
               [&] { return stop_ || (plan_ && (ready_.size() > 1 || (running_ > 0 && !ready_.empty()))); });
    if (stop_) return;
    work(lock, thread);
  }
}

}  // namespace sluice::runtime
