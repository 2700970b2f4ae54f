#pragma once
// Batches made ahead of time by background threads, delivered in order. A BatchProducer says what the next
// batch is made of (`claim`, called by one thread at a time, in order) and each job then makes its batch on
// any thread, so the result does not depend on how many threads there are. At most `depth` batches wait. The
// Prefetcher owns producer and threads; `next` is for one consumer, `stop` for any thread. An error thrown by
// a job or a claim comes out of `next` in the place of its batch.

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/array.h"

namespace sluice::runtime::data {

/// images float [n, h, w, c] scaled to [−1, 1]; labels int32 [n].
struct Batch {
  Array images, labels;
  int64_t size() const { return labels.elements(); }
};

/// Makes one batch; called once, on any thread.
using BatchJob = std::function<Batch()>;

class BatchProducer {
 public:
  virtual ~BatchProducer() = default;
  /// The next batch's job; an empty function at the end of the data.
  virtual BatchJob claim() = 0;
};

class Prefetcher {
 public:
  Prefetcher(std::unique_ptr<BatchProducer> producer, int threads = 1, int depth = 4);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next batch; nullopt at the end of the data or after stop().
  std::optional<Batch> next();
  void stop();

 private:
  struct Slot {
    Batch batch;
    std::exception_ptr error;
    bool end = false;
  };
  void work();

  std::unique_ptr<BatchProducer> producer_;
  std::mutex claim_mutex_;  // guards producer_ and claimed_
  int64_t claimed_ = 0;
  std::mutex mutex_;  // guards all below
  std::condition_variable filled_, drained_;
  std::map<int64_t, Slot> ready_;
  int64_t delivered_ = 0, depth_;
  bool stopped_ = false, ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::runtime::data
