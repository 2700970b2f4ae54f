#pragma once
// What a session compiled: one entry per (fetches, feeds with types and shapes, targets), plus the values of
// small feeds that decide shapes, for the variables' shapes at that time. Bounded: the entry unused for
// longest goes. A look-up allocates nothing. Own mutex; any thread.

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/executor.h"

namespace sluice::runtime {

/// What a run asks for; refers to the caller's vectors.
struct RunRequest {
  const std::vector<graph::Output>& fetches;
  const std::vector<Feed>& feeds;
  const std::vector<graph::Node*>& targets;
  uint64_t hash() const;
};

class PlanEntry {
 public:
  PlanEntry(const RunRequest& request, std::vector<int> by_value, std::shared_ptr<const Plan> plan,
            std::vector<graph::Node*> nodes, uint64_t graph_version);
  /// True when the entry serves this request now: same signature, feed values that decide shapes, variables.
  bool serves(const RunRequest& request) const;
  /// Looks again whether the graph's nodes are as they were; called when the graph's version moved.
  bool still_valid(uint64_t graph_version);

  ContextPool contexts;
  int64_t last_used = 0;  // by the cache, under its mutex

 private:
  struct FeedKey {
    graph::Output output;
    DType dtype;
    Dims dims;
  };
  std::vector<graph::Output> fetches_;
  std::vector<FeedKey> feeds_;
  std::vector<graph::Node*> targets_;
  std::vector<std::pair<int, Array>> by_value_;  // feed index, its value
  std::vector<graph::Node*> nodes_;
  uint64_t fingerprint_ = 0;
  std::atomic<uint64_t> graph_version_;
};

class PlanCache {
 public:
  explicit PlanCache(int capacity) : capacity_(capacity < 1 ? 1 : capacity) {}
  /// Null when there is none.
  std::shared_ptr<PlanEntry> find(const RunRequest& request, uint64_t graph_version);
  void insert(const RunRequest& request, std::shared_ptr<PlanEntry> entry);
  size_t size() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  // shared: an entry in use outlives its eviction
  std::unordered_map<uint64_t, std::vector<std::shared_ptr<PlanEntry>>> entries_;
  size_t count_ = 0;
  int64_t tick_ = 0;
  const int capacity_;
};

}  // namespace sluice::runtime
