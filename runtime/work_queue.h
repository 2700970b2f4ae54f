#pragma once
// The compute team of a device: one parallel loop at a time over a fixed number of threads, the caller among
// them. OpenMP in ordinary builds (oneDNN's own team, so there is never a second spinning pool), std::thread
// where OpenMP is off (TSan), single-threaded for tests and reference mode. parallel_for is called by the one
// compute thread of the device; it may not be nested. Chunks are fixed by (count, grain), never by the width,
// so that sums over chunks give the same bits at any width.

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace sluice::runtime {

class WorkQueue {
 public:
  virtual ~WorkQueue() = default;
  virtual int width() const = 0;
  using Body = void (*)(void* context, int64_t begin, int64_t end, int worker);
  /// Runs body over [0, count) in chunks of `grain` (the last may be shorter); returns when all are done.
  /// Exceptions thrown by the body reach the caller (the first one). No allocation.
  virtual void run_chunks(int64_t count, int64_t grain, Body body, void* context) = 0;

  /// F: void(int64_t begin, int64_t end) or void(int64_t begin, int64_t end, int worker).
  template <class F>
  void parallel_for(int64_t count, int64_t grain, F&& f) {
    if (count <= 0) return;
    run_chunks(
        count, grain < 1 ? 1 : grain,
        [](void* c, int64_t b, int64_t e, int w) {
          auto& fn = *static_cast<std::remove_reference_t<F>*>(c);
          if constexpr (std::is_invocable_v<F, int64_t, int64_t, int>)
            fn(b, e, w);
          else
            fn(b, e);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }
};

std::unique_ptr<WorkQueue> make_serial_queue();
std::unique_ptr<WorkQueue> make_thread_queue(int width);
/// OpenMP where built in, else make_thread_queue. width 0: as many as affinity and cgroup allow.
std::unique_ptr<WorkQueue> make_default_queue(int width);
/// CPUs this process may use (affinity and cgroup quota).
int available_cpus();

}  // namespace sluice::runtime
