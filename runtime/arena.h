#pragma once
// The memory that plans place their values in: mapped once, on huge pages, touched by all threads before the
// first run, never given back while the session lives. A run leases an arena; several plans of a session use
// the same one in turn. ArenaPool has its own mutex; an Arena belongs to its lease.

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/work_queue.h"

namespace sluice::runtime {

class Arena {
 public:
  /// ResourceExhausted when the system refuses. Touches every page, in parallel.
  Arena(size_t bytes, WorkQueue& queue);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

class ArenaPool {
 public:
  /// The smallest idle arena of at least `bytes`; else a new one, in place of the largest idle one that is
  /// too small. Allocates nothing when an idle one fits.
  std::unique_ptr<Arena> lease(size_t bytes, WorkQueue& queue);
  void give_back(std::unique_ptr<Arena> arena);
  /// Bytes of all arenas, leased ones included.
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;  // guards idle_ and bytes_
  std::vector<std::unique_ptr<Arena>> idle_;
  size_t bytes_ = 0;
};

}  // namespace sluice::runtime
