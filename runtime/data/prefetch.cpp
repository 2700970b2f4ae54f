#include "runtime/data/prefetch.h"

#include <algorithm>

namespace sluice::runtime::data {

Prefetcher::Prefetcher(std::unique_ptr<BatchProducer> producer, int threads, int depth)
    : producer_(std::move(producer)), depth_(std::max(depth, 1)) {
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { work(); });
}

Prefetcher::~Prefetcher() {
  stop();
  for (std::thread& t : threads_) t.join();
}

void Prefetcher::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  filled_.notify_all();
  drained_.notify_all();
}

std::optional<Batch> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [&] { return stopped_ || ready_.count(delivered_) > 0; });
  auto it = ready_.find(delivered_);
  if (stopped_ || it == ready_.end()) return std::nullopt;
  if (it->second.end) return std::nullopt;  // stays, for later calls
  if (it->second.error) std::rethrow_exception(it->second.error);
  Batch batch = std::move(it->second.batch);
  ready_.erase(it);
  ++delivered_;
  drained_.notify_all();
  return batch;
}

void Prefetcher::work() {
  for (;;) {
    int64_t ticket;
    BatchJob job;
    Slot slot;
    {
      std::lock_guard claim(claim_mutex_);
      {
        std::unique_lock lock(mutex_);
        drained_.wait(lock, [&] { return stopped_ || ended_ || claimed_ - delivered_ < depth_; });
        if (stopped_ || ended_) return;
      }
      ticket = claimed_++;
      try {
        job = producer_->claim();
        slot.end = !job;
      } catch (...) {
        slot.error = std::current_exception();
      }
      if (slot.end || slot.error) {
        std::lock_guard lock(mutex_);
        ended_ = true;
      }
    }
    if (job) {
      try {
        slot.batch = job();
      } catch (...) {
        slot.error = std::current_exception();
      }
    }
    std::lock_guard lock(mutex_);
    ready_.emplace(ticket, std::move(slot));
    filled_.notify_all();
    drained_.notify_all();
  }
}

}  // namespace sluice::runtime::data
