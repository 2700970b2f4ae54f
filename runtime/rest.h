#pragma once
// The rest of a cut run: what follows a value whose size only the run knows. It is lowered for the sizes that
// came, part after part, and each part's plan is kept with the plan before it, by those sizes, with a bound.

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/executor.h"
#include "runtime/plan_cache.h"

namespace sluice::runtime {

/// One compiled later part.
struct RestEntry {
  RestEntry(std::shared_ptr<const Plan> plan, std::vector<plan::Given> g)
      : contexts(std::move(plan)), given(std::move(g)) {}
  /// True when compiled for values of these types and dims, and for the variables as they are.
  bool serves(const std::vector<Array>& feeds) const;

  ContextPool contexts;
  std::vector<plan::Given> given;
};

/// Later parts of one plan. Own mutex; any thread.
class RestCache {
 public:
  std::shared_ptr<RestEntry> find(const std::vector<Array>& feeds);
  void insert(std::shared_ptr<RestEntry> entry);

 private:
  // Sparse training has a part for each number of distinct rows that batches name.
  static constexpr size_t kCapacity = 64;
  std::mutex mutex_;                                 // guards entries_
  std::vector<std::shared_ptr<RestEntry>> entries_;  // most recent last; shared: in use beyond eviction
};

struct RestEnvironment {
  const graph::Graph& graph;
  const plan::BuildOptions& build;
  ArenaPool& arenas;
};

/// Runs all later parts after `first` has run in `context`; writes the fetches it left open.
void run_rest(const RestEnvironment& rest, const RunRequest& request, const Plan& first, RunContext& context,
              RunEnvironment& env, std::vector<Array>& results);

}  // namespace sluice::runtime
