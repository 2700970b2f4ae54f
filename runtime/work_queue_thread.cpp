#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/work_queue_impl.h"

namespace sluice::runtime {
namespace {

// Workers spin for a moment and then sleep: a wake-up costs microseconds, a spinning vCPU costs its sibling.
constexpr int kSpins = 2000;

class ThreadQueue final : public WorkQueue {
 public:
  explicit ThreadQueue(int width) : width_(width) {
    for (int w = 1; w < width; ++w) threads_.emplace_back([this, w] { loop(w); });
  }
  ~ThreadQueue() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  int width() const override { return width_; }

  void run_chunks(int64_t count, int64_t grain, Body body, void* context) override {
    if (count <= grain || width_ == 1 || busy_) {
      for (int64_t b = 0; b < count; b += grain) body(context, b, b + grain < count ? b + grain : count, 0);
      return;
    }
    busy_ = true;
    shares_.begin(width_, count, grain, body, context);
    running_.store(width_ - 1, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    shares_.work(0);
    for (int i = 0; running_.load(std::memory_order_acquire) != 0; ++i)
      if (i > kSpins) std::this_thread::yield();
    busy_ = false;
    shares_.rethrow();
  }

 private:
  void loop(int worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation_.load(std::memory_order_acquire) == seen; ++i) {
      }
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
        seen = generation_.load(std::memory_order_acquire);
        if (stop_) return;
      }
      shares_.work(worker);
      running_.fetch_sub(1, std::memory_order_release);
    }
  }

  const int width_;
  ChunkShares shares_;
  bool busy_ = false;  // the caller's thread only: a nested call runs inline
  std::mutex mutex_;   // guards stop_ and the sleep on generation_
  std::condition_variable wake_;
  bool stop_ = false;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> running_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<WorkQueue> make_thread_queue(int width) {
  if (width <= 0) width = available_cpus();
  return std::make_unique<ThreadQueue>(width < ChunkShares::kMaxWidth ? width : ChunkShares::kMaxWidth);
}

}  // namespace sluice::runtime
