#include "runtime/arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "graph/support/check.h"

namespace sluice::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

}  // namespace

Arena::Arena(size_t bytes, WorkQueue& queue) : size_(bytes) {
  if (bytes == 0) return;
  // One huge page more, so that the start can be aligned to one.
  const size_t mapped = bytes >= kHugePage ? bytes + kHugePage : bytes;
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SLUICE_REQUIRE(p != MAP_FAILED, Code::kResourceExhausted, "OOM when mapping an arena of ", bytes, " bytes");
  data_ = static_cast<char*>(p);
  if (bytes >= kHugePage) {
    char* aligned =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kHugePage - 1) / kHugePage * kHugePage);
    if (aligned != data_) munmap(data_, static_cast<size_t>(aligned - data_));
    const size_t used = (bytes + kPage - 1) / kPage * kPage;
    char* end = static_cast<char*>(p) + (mapped + kPage - 1) / kPage * kPage;
    if (aligned + used < end) munmap(aligned + used, static_cast<size_t>(end - aligned - used));
    data_ = aligned;
    madvise(data_, used, MADV_HUGEPAGE);
  }
  const auto pages = static_cast<int64_t>((bytes + kPage - 1) / kPage);
  queue.parallel_for(pages, static_cast<int64_t>(kHugePage / kPage) * 4, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      static_cast<volatile char*>(data_)[static_cast<size_t>(i) * kPage] = 0;
  });
}

Arena::~Arena() {
  if (data_) munmap(data_, (size_ + kPage - 1) / kPage * kPage);
}

std::unique_ptr<Arena> ArenaPool::lease(size_t bytes, WorkQueue& queue) {
  {
    std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it)
      if ((*it)->size() >= bytes && (best == idle_.end() || (*it)->size() < (*best)->size())) best = it;
    if (best != idle_.end()) {
      std::unique_ptr<Arena> a = std::move(*best);
      idle_.erase(best);
      return a;
    }
    // Every idle one is too small: the largest gives way.
    auto largest = std::max_element(idle_.begin(), idle_.end(),
                                    [](const auto& a, const auto& b) { return a->size() < b->size(); });
    if (largest != idle_.end()) {
      bytes_ -= (*largest)->size();
      idle_.erase(largest);
    }
    bytes_ += bytes;
    // So that giving back never allocates.
    idle_.reserve(idle_.size() + 16);
  }
  try {
    return std::make_unique<Arena>(bytes, queue);
  } catch (...) {
    std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    throw;
  }
}

void ArenaPool::give_back(std::unique_ptr<Arena> arena) {
  if (!arena) return;
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(arena));
}

size_t ArenaPool::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace sluice::runtime
