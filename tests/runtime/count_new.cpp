// Counts every allocation of ours, so that a test can see that a run makes none. A file of its own: nothing
// here calls what it replaces. What oneDNN's dnnl_primitive_execute allocates for its argument map, and frees
// before it returns, is counted apart (g_vendor_allocations): the caller of operator new lies in libdnnl
// then.

#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

extern std::atomic<int64_t> g_allocations;
extern std::atomic<int64_t> g_vendor_allocations;
extern std::atomic<int64_t> g_live_allocations;
std::atomic<int64_t> g_allocations{0};
std::atomic<int64_t> g_vendor_allocations{0};
std::atomic<int64_t> g_live_allocations{0};  // made and not freed yet, whoever made them

namespace {

struct Range {
  uintptr_t from = 0, to = 0;
};

int find_dnnl(dl_phdr_info* info, size_t, void* out) {
  if (!info->dlpi_name || !std::strstr(info->dlpi_name, "libdnnl")) return 0;
  auto& r = *static_cast<Range*>(out);
  r.from = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    if (end > r.to) r.to = end;
  }
  return 1;
}

bool in_vendor(const void* caller) {
  static const Range range = [] {
    Range r;
    dl_iterate_phdr(find_dnnl, &r);
    return r;
  }();
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return at >= range.from && at < range.to;
}

void* take(size_t n, const void* caller) {
  auto& counter = in_vendor(caller) ? g_vendor_allocations : g_allocations;
  counter.fetch_add(1, std::memory_order_relaxed);
  g_live_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(n ? n : 1);
}

void give_back(void* p) {
  if (p) g_live_allocations.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}

}  // namespace

void* operator new(size_t n) {
  if (void* p = take(n, __builtin_return_address(0))) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return take(n, __builtin_return_address(0)); }
void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete(void* p, size_t) noexcept { give_back(p); }
