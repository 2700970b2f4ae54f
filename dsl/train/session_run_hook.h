#pragma once
// Hooks: what a monitored session tells about each of its runs, and asks whether to add to it
// (graph-and-training §6.3). Order of a session's life: begin (the graph may still grow), the session is
// made, after_create_session, then for every run before_run and after_run, at last end, which is left out
// when the session ends by an error. After a recovery after_create_session comes again and the global step
// may have gone back. All calls come from the thread that uses the monitored session.
//
//   struct PrintLoss final : SessionRunHook {
//     explicit PrintLoss(Tensor loss) { args.fetches = {loss}; }
//     const SessionRunArgs* before_run(SessionRunContext&) override { return &args; }
//     void after_run(SessionRunContext&, const SessionRunValues& v) override {
//       std::cerr << v[0].item<float>() << '\n';
//     }
//     SessionRunArgs args;
//   };

#include <memory>
#include <optional>
#include <vector>

#include "dsl/tensor.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

using runtime::Array;
using runtime::Feed;
using runtime::RunMetadata;
using runtime::RunOptions;
using runtime::Session;

class Clock;
class Coordinator;

/// What begin gets: the graph to add ops to and the run's clock.
struct HookSetup {
  Graph& graph;
  Clock& clock;
};

/// What a hook adds to a run.
struct SessionRunArgs {
  std::vector<Output> fetches = {};
  std::vector<Node*> targets = {};
  std::vector<Feed> feeds = {};
  /// The strongest trace level and the longest timeout of all hooks and the caller count; a cancel token is
  /// the caller's alone.
  std::optional<RunOptions> options = {};
};

/// The run that is about to start or has ended.
class SessionRunContext {
 public:
  SessionRunContext(const std::vector<Output>& fetches, const std::vector<Feed>& feeds,
                    const std::vector<Node*>& targets, Session& session)
      : fetches_(fetches), feeds_(feeds), targets_(targets), session_(session) {}

  /// What the caller asked for, without the hooks' additions.
  const std::vector<Output>& original_fetches() const { return fetches_; }
  const std::vector<Feed>& original_feeds() const { return feeds_; }
  const std::vector<Node*>& original_targets() const { return targets_; }
  /// The session under the hooks; runs on it are not seen by hooks.
  Session& session() const { return session_; }
  /// No run follows this one.
  void request_stop() { stop_ = true; }
  bool stop_requested() const { return stop_; }

 private:
  const std::vector<Output>& fetches_;
  const std::vector<Feed>& feeds_;
  const std::vector<Node*>& targets_;
  Session& session_;
  bool stop_ = false;
};

/// What a run gave the hook for its own fetches, in its order. Valid during after_run.
class SessionRunValues {
 public:
  SessionRunValues(const std::vector<Array>& all, const int* places, size_t size, const RunOptions& o,
                   const RunMetadata& m)
      : options(o), metadata(m), all_(all), places_(places), size_(size) {}
  size_t size() const { return size_; }
  const Array& operator[](size_t i) const { return all_[static_cast<size_t>(places_[i])]; }

  const RunOptions& options;
  const RunMetadata& metadata;

 private:
  const std::vector<Array>& all_;
  const int* places_;
  size_t size_;
};

class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;
  virtual void begin(const HookSetup&) {}
  virtual void after_create_session(Session&, Coordinator&) {}
  /// Null: nothing to add. The result stays the hook's and must live until after_run; as long as its fetches,
  /// targets and feed keys are as in an earlier run, the session has nothing to work out again.
  virtual const SessionRunArgs* before_run(SessionRunContext&) { return nullptr; }
  virtual void after_run(SessionRunContext&, const SessionRunValues&) {}
  virtual void end(Session&) {}
};

/// Shared: the session calls them, their makers look into them afterwards.
using Hooks = std::vector<std::shared_ptr<SessionRunHook>>;

/// The graph's step for hooks: `global_step/add`, a value that no later update changes, made once a graph and
/// kept in GLOBAL_STEP_READ_OP_CACHE. Empty when the graph has no step.
Tensor get_or_create_global_step_read(Graph& g);

}  // namespace sluice::dsl::train
