#pragma once
// One run for the caller and all hooks: their fetches, feeds, targets and options merged. What was merged is
// kept by what was asked for, so that a step which asks as an earlier one did compares a few handles and
// allocates nothing. Private to the monitored session; one thread.

#include <memory>
#include <vector>

#include "dsl/train/session_run_hook.h"

namespace sluice::dsl::train {

class RunMerger {
 public:
  explicit RunMerger(const Hooks& hooks) : hooks_(hooks), args_(hooks.size()) {}

  /// Asks the hooks, runs, gives them what they asked for; `results` get the caller's values.
  /// FailedPrecondition "Same tensor is fed by two hooks. …" and "Same tensor is fed by a SessionRunHook and
  /// user. …".
  void run(SessionRunContext& context, std::vector<Array>& results, const RunOptions& options,
           RunMetadata& metadata);
  /// Forgets values kept for a session that is gone.
  void new_session() { merged_.clear(); }

 private:
  struct HookPart {
    std::vector<Output> fetches, feeds;
    std::vector<Node*> targets;
    std::vector<int> places;  // of the hook's fetches among all
    bool given = false;
    bool same(const SessionRunArgs* args) const;
  };
  struct Merged {
    // What it was made from.
    std::vector<Output> user_fetches, user_feeds;
    std::vector<Node*> user_targets;
    std::vector<HookPart> hooks;
    // What it came to. `feeds` is used only when hooks feed: the caller's, then theirs.
    std::vector<Output> fetches;
    std::vector<Node*> targets;
    std::vector<Feed> feeds;
    bool hooks_feed = false;
    std::vector<Array> values;
    bool serves(const SessionRunContext& c, const std::vector<const SessionRunArgs*>& args) const;
  };
  Merged& merged(const SessionRunContext& context);
  std::unique_ptr<Merged> merge(const SessionRunContext& context) const;
  void fill_feeds(Merged& m, const SessionRunContext& context) const;
  RunOptions merge_options(const RunOptions& options) const;

  const Hooks& hooks_;
  std::vector<const SessionRunArgs*> args_;      // of the run at hand
  std::vector<std::unique_ptr<Merged>> merged_;  // latest first, few
};

}  // namespace sluice::dsl::train
