#include "runtime/work_queue.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "runtime/work_queue_impl.h"

namespace sluice::runtime {
namespace {

class SerialQueue final : public WorkQueue {
 public:
  int width() const override { return 1; }
  void run_chunks(int64_t count, int64_t grain, Body body, void* context) override {
    for (int64_t b = 0; b < count; b += grain) body(context, b, std::min(count, b + grain), 0);
  }
};

// CPUs granted by the cgroup quota, rounded up; 0 when there is none.
int cgroup_cpus() {
  if (std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    char quota[32] = {};
    long period = 0;
    const int n = std::fscanf(f, "%31s %ld", quota, &period);
    std::fclose(f);
    if (n == 2 && std::string(quota) != "max" && period > 0)
      return static_cast<int>((std::atol(quota) + period - 1) / period);
  }
  return 0;
}

}  // namespace

void ChunkShares::begin(int width, int64_t count, int64_t grain, WorkQueue::Body body, void* context) {
  const int64_t chunks = (count + grain - 1) / grain;
  count_ = count, grain_ = grain, body_ = body, context_ = context, width_ = width;
  for (int w = 0; w < width; ++w) {
    shares_[static_cast<size_t>(w)].next.store(chunks * w / width, std::memory_order_relaxed);
    shares_[static_cast<size_t>(w)].end = chunks * (w + 1) / width;
  }
  failed_.store(false, std::memory_order_relaxed);
}

void ChunkShares::work(int worker) noexcept {
  for (int k = 0; k < width_; ++k) {
    Share& share = shares_[static_cast<size_t>((worker + k) % width_)];
    while (!failed_.load(std::memory_order_relaxed)) {
      const int64_t c = share.next.fetch_add(1, std::memory_order_relaxed);
      if (c >= share.end) break;
      try {
        body_(context_, c * grain_, std::min(count_, (c + 1) * grain_), worker);
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }
}

void ChunkShares::rethrow() {
  if (failed_.load(std::memory_order_acquire)) {
    std::exception_ptr e = std::exchange(error_, nullptr);
    std::rethrow_exception(e);
  }
}

#ifndef SLUICE_WITH_OPENMP
TeamWidth::TeamWidth(int) {}
TeamWidth::~TeamWidth() {}
#endif

std::unique_ptr<WorkQueue> make_serial_queue() { return std::make_unique<SerialQueue>(); }

std::unique_ptr<WorkQueue> make_default_queue(int width) {
  if (width <= 0) width = available_cpus();
  width = std::min(width, ChunkShares::kMaxWidth);
  if (width == 1) return make_serial_queue();
#ifdef SLUICE_WITH_OPENMP
  return make_openmp_queue(width);
#else
  return make_thread_queue(width);
#endif
}

int available_cpus() {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                      : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const int quota = cgroup_cpus()) n = std::min(n, quota);
  return std::max(n, 1);
}

}  // namespace sluice::runtime
