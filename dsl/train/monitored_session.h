#pragma once
// Monitored sessions: a session with hooks around every run, a coordinator for its threads, and recovery
// (graph-and-training §6.3). Aborted and Unavailable mean that the runtime was lost: the session is made
// again (the chief restores the latest checkpoint) and the same run is tried again. One thread at a time,
// which is also the thread the hooks are called on; other threads may stop it through the coordinator.
//
//   MonitoredTrainingSession session(g, {.checkpoint_dir = "logs", .hooks = {stop_at}});
//   session.with([&] { while (!session.should_stop()) session.run({train_op}); });
//
// `with` is Python's with block: the end of the input (OutOfRange) or StopIteration ends it cleanly, with the
// hooks' `end`; any other exception goes on, without it. A session that nobody closed is closed by its
// destructor: cleanly, unless an exception is on its way.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "dsl/train/session_creator.h"
#include "dsl/train/session_run_hook.h"

namespace sluice::dsl::train {

/// Ends a training loop cleanly.
class StopIteration : public std::exception {
 public:
  const char* what() const noexcept override { return "step_fn has requested the iterations to stop."; }
};

class MonitoredSession;

/// What run_step_fn gives its function.
class StepContext {
 public:
  StepContext(MonitoredSession& owner, Session& session) : owner_(owner), session_(session) {}
  /// The session under the hooks.
  Session& session() const { return session_; }
  std::vector<Array> run_with_hooks(const std::vector<Output>& fetches, const std::vector<Feed>& feeds = {},
                                    const std::vector<Node*>& targets = {});
  /// Leaves the function: throws StopIteration.
  [[noreturn]] void request_stop() const { throw StopIteration(); }

 private:
  MonitoredSession& owner_;
  Session& session_;
};

struct MonitoredSessionOptions {
  double stop_grace_period_secs = 120;  // that threads have to end when the session closes
  Clock* clock = nullptr;               // what the hooks get; null: the system's
};

class MonitoredSession {
 public:
  /// Calls every hook's begin, makes the session, starts the graph's queue runners, and calls
  /// after_create_session. Shared creator: the caller may look into it afterwards.
  explicit MonitoredSession(std::shared_ptr<SessionCreator> creator, Hooks hooks = {},
                            const MonitoredSessionOptions& o = {});
  virtual ~MonitoredSession();
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  /// Session::run with hooks. FailedPrecondition "Run called even after should_stop requested."
  std::vector<Array> run(const std::vector<Output>& fetches, const std::vector<Feed>& feeds = {},
                         const std::vector<Node*>& targets = {}, const RunOptions& options = {},
                         RunMetadata* metadata = nullptr);
  void run_into(std::vector<Array>& results, const std::vector<Output>& fetches,
                const std::vector<Feed>& feeds = {}, const std::vector<Node*>& targets = {},
                const RunOptions& options = {}, RunMetadata* metadata = nullptr);

  /// Calls `fn(StepContext&)` and returns what it returns; tried again after a recovery.
  template <class F>
  auto run_step_fn(F&& fn) {
    static_assert(std::is_invocable_v<F&, StepContext&>, "step_fn has exactly one parameter, StepContext&");
    using R = std::invoke_result_t<F&, StepContext&>;
    if constexpr (std::is_void_v<R>) {
      step([&](StepContext& c) { fn(c); });
    } else {
      std::optional<R> result;
      step([&](StepContext& c) { result.emplace(fn(c)); });
      return std::move(*result);
    }
  }

  /// A hook, a thread or the end of the queues asked for it, or the session is closed.
  bool should_stop();
  /// Hooks' end, then the threads stop and the session closes. Throws what they threw; FailedPrecondition
  /// "Session is already closed." the second time.
  void close();
  /// The block `body` on this session, which is closed behind it.
  void with(const std::function<void()>& body);

  Graph& graph() const;
  /// Stops when the session closes, or when one of its threads fails. FailedPrecondition when closed.
  Coordinator& coordinator() const;

 protected:
  struct Singular {};
  MonitoredSession(Singular, std::shared_ptr<SessionCreator> creator, Hooks hooks,
                   const MonitoredSessionOptions& o);
  Session& raw() const;

 private:
  friend class StepContext;
  struct Impl;
  void step(const std::function<void(StepContext&)>& fn);
  std::unique_ptr<Impl> impl_;
};

/// A monitored session without recovery: whatever a run throws goes to the caller.
class SingularMonitoredSession final : public MonitoredSession {
 public:
  explicit SingularMonitoredSession(std::shared_ptr<SessionCreator> creator, Hooks hooks = {},
                                    const MonitoredSessionOptions& o = {})
      : MonitoredSession(Singular{}, std::move(creator), std::move(hooks), o) {}
  /// On a chief's session of its own.
  explicit SingularMonitoredSession(Graph& g, Hooks hooks = {}, ChiefSessionCreatorOptions chief = {},
                                    const MonitoredSessionOptions& o = {});
  Session& raw_session() const { return raw(); }
};

/// An argument with three states: left out (a rule decides), off, or a number. Zero is off.
class Setting {
 public:
  Setting() = default;
  Setting(double v) : value_(v), given_(true) {}
  Setting(int v) : value_(v), given_(true) {}
  Setting(int64_t v) : value_(static_cast<double>(v)), given_(true) {}
  Setting(std::optional<double> v) : value_(v), given_(true) {}
  static Setting off() { return Setting(std::optional<double>()); }
  bool given() const { return given_; }
  /// A number above 0, or nothing.
  std::optional<double> value() const { return value_ && *value_ > 0 ? value_ : std::nullopt; }

 private:
  std::optional<double> value_;
  bool given_ = false;
};

struct MonitoredTrainingSessionOptions {
  std::string master = {};
  bool is_chief = true;
  std::string checkpoint_dir = {};
  std::shared_ptr<Scaffold> scaffold = nullptr;
  Hooks hooks = {};
  Hooks chief_only_hooks = {};
  Setting save_checkpoint_secs = {};  // 600 when neither this nor the steps are given
  Setting save_checkpoint_steps = {};
  Setting save_summaries_steps = {};  // 100 when neither this nor the seconds are given
  Setting save_summaries_secs = {};
  runtime::SessionOptions config = {};
  double stop_grace_period_secs = 120;
  Setting log_step_count_steps = 100;
  double max_wait_secs = 7200;  // a worker's wait for the chief
  bool save_graph_def = true;
  std::string summary_dir = {};  // default: checkpoint_dir
  Clock* clock = nullptr;
};

/// TensorFlow's tf.train.MonitoredTrainingSession: the chief restores, initialises, counts, summarises and
/// saves; a worker waits for it and has the user's hooks only. Giving both seconds and steps is refused.
class MonitoredTrainingSession final : public MonitoredSession {
 public:
  explicit MonitoredTrainingSession(Graph& g, const MonitoredTrainingSessionOptions& o = {});

 private:
  MonitoredTrainingSession(Graph& g, const MonitoredTrainingSessionOptions& o,
                           const std::shared_ptr<Scaffold>& scaffold);
};

}  // namespace sluice::dsl::train
