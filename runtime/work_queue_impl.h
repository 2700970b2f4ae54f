#pragma once
// What the work queues share: chunks dealt out in contiguous shares, one a worker, so that a worker meets the
// same memory in step after step; a worker that is done takes chunks from the others' shares, since two vCPUs
// are rarely equally fast. Private to runtime/.

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "runtime/work_queue.h"

namespace sluice::runtime {

class ChunkShares {
 public:
  static constexpr int kMaxWidth = 256;
  void begin(int width, int64_t count, int64_t grain, WorkQueue::Body body, void* context);
  /// Runs chunks as `worker` until none is left. The first exception is kept and ends the loop early.
  void work(int worker) noexcept;
  /// Throws what `work` kept.
  void rethrow();

 private:
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::array<Share, kMaxWidth> shares_;
  int64_t count_ = 0, grain_ = 1;
  WorkQueue::Body body_ = nullptr;
  void* context_ = nullptr;
  int width_ = 1;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // written by the thread that set failed_
};

/// While it lives, OpenMP loops that libraries open on this thread take `width` threads. Nothing without
/// OpenMP.
class TeamWidth {
 public:
  explicit TeamWidth(int width);
  ~TeamWidth();
  TeamWidth(const TeamWidth&) = delete;
  TeamWidth& operator=(const TeamWidth&) = delete;

 private:
  int former_ = 0;
};

/// Present where SLUICE_WITH_OPENMP.
std::unique_ptr<WorkQueue> make_openmp_queue(int width);

}  // namespace sluice::runtime
