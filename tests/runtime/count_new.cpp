// Counts every allocation of the process, so that a test can see that a run makes none. A file of its own:
// nothing here calls what it replaces.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

extern std::atomic<int64_t> g_allocations;
std::atomic<int64_t> g_allocations{0};

void* operator new(size_t n) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
