#include "runtime/plan_cache.h"

#include <algorithm>
#include <cstring>

#include "graph/support/hash.h"
#include "runtime/plan/prune.h"

namespace sluice::runtime {
namespace {

bool same_value(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

uint64_t RunRequest::hash() const {
  uint64_t h = fetches.size() * 31 + feeds.size();
  auto mix = [&](const void* p, int64_t i) {
    h = (h ^ (reinterpret_cast<uintptr_t>(p) + static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15ULL)) *
        0x100000001b3ULL;
  };
  for (const graph::Output& o : fetches) mix(o.node, o.index);
  for (const Feed& f : feeds) {
    mix(f.output.node, f.output.index + 64 * static_cast<int>(f.value.dtype()));
    for (int64_t d : f.value.dims()) mix(nullptr, d);
  }
  for (const graph::Node* n : targets) mix(n, -1);
  return hash_mix(h);
}

PlanEntry::PlanEntry(const RunRequest& request, std::vector<int> by_value, std::shared_ptr<const Plan> plan,
                     std::vector<graph::Node*> nodes, uint64_t graph_version)
    : contexts(std::move(plan)),
      fetches_(request.fetches),
      targets_(request.targets),
      nodes_(std::move(nodes)),
      graph_version_(graph_version) {
  for (const Feed& f : request.feeds) feeds_.push_back({f.output, f.value.dtype(), f.value.dims()});
  for (int k : by_value) by_value_.emplace_back(k, request.feeds[static_cast<size_t>(k)].value.clone());
  fingerprint_ = plan::fingerprint(nodes_);
}

bool PlanEntry::serves(const RunRequest& request) const {
  if (fetches_ != request.fetches || targets_ != request.targets || feeds_.size() != request.feeds.size())
    return false;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const Feed& f = request.feeds[i];
    if (!(feeds_[i].output == f.output) || feeds_[i].dtype != f.value.dtype() ||
        feeds_[i].dims != f.value.dims())
      return false;
  }
  for (const auto& [k, value] : by_value_)
    if (!same_value(value, request.feeds[static_cast<size_t>(k)].value)) return false;
  for (const plan::VariableUse& u : contexts.plan().variables())
    if (u.variable->spec_hash() != u.spec_hash) return false;
  return true;
}

bool PlanEntry::still_valid(uint64_t graph_version) {
  if (graph_version_.load(std::memory_order_relaxed) == graph_version) return true;
  if (plan::fingerprint(nodes_) != fingerprint_) return false;
  graph_version_.store(graph_version, std::memory_order_relaxed);
  return true;
}

std::shared_ptr<PlanEntry> PlanCache::find(const RunRequest& request, uint64_t graph_version) {
  const uint64_t h = request.hash();
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(h);
  if (it == entries_.end()) return nullptr;
  auto& list = it->second;
  for (size_t k = 0; k < list.size(); ++k) {
    if (!list[k]->serves(request)) continue;
    if (!list[k]->still_valid(graph_version)) {
      list.erase(list.begin() + static_cast<long>(k--));
      --count_;
      continue;
    }
    list[k]->last_used = ++tick_;
    return list[k];
  }
  return nullptr;
}

void PlanCache::insert(const RunRequest& request, std::shared_ptr<PlanEntry> entry) {
  std::lock_guard lock(mutex_);
  entry->last_used = ++tick_;
  entries_[request.hash()].push_back(std::move(entry));
  ++count_;
  while (count_ > static_cast<size_t>(capacity_)) {
    auto oldest = entries_.end();
    size_t at = 0;
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      for (size_t k = 0; k < it->second.size(); ++k)
        if (oldest == entries_.end() || it->second[k]->last_used < oldest->second[at]->last_used)
          oldest = it, at = k;
    oldest->second.erase(oldest->second.begin() + static_cast<long>(at));
    if (oldest->second.empty()) entries_.erase(oldest);
    --count_;
  }
}

size_t PlanCache::size() const {
  std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace sluice::runtime
