// Replaces operator new and aligned_alloc of the whole program. A file of its own: nothing here calls what it
// replaces.
#include "tests/fuzz/count_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> g_live{0}, g_start{0}, g_peak{0}, g_aligned{0};

void* counted(size_t n) noexcept {
  void* const p = std::malloc(n ? n : 1);
  if (!p) return nullptr;
  const int64_t live = g_live.fetch_add(static_cast<int64_t>(malloc_usable_size(p))) +
                       static_cast<int64_t>(malloc_usable_size(p));
  int64_t peak = g_peak.load();
  while (live > peak && !g_peak.compare_exchange_weak(peak, live)) {
  }
  return p;
}

void uncounted(void* p) noexcept {
  if (p) g_live.fetch_sub(static_cast<int64_t>(malloc_usable_size(p)));
  std::free(p);
}

}  // namespace

namespace sluice::fuzz {

void start_counting() {
  g_start = g_live.load();
  g_peak = g_live.load();
  g_aligned = 0;
}

size_t peak_bytes() { return static_cast<size_t>(g_peak.load() - g_start.load() + g_aligned.load()); }

}  // namespace sluice::fuzz

void* operator new(size_t n) {
  if (void* p = counted(n)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void* operator new[](size_t n) { return operator new(n); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { uncounted(p); }
void operator delete(void* p, size_t) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { uncounted(p); }
void operator delete[](void* p, size_t) noexcept { uncounted(p); }

extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  g_aligned.fetch_add(static_cast<int64_t>(size));
  void* p = nullptr;
  return posix_memalign(&p, alignment, size) == 0 ? p : nullptr;
}
