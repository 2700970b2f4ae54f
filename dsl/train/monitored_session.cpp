#include "dsl/train/monitored_session.h"

#include <algorithm>

#include "dsl/train/coordinator.h"
#include "dsl/train/hooks.h"
#include "dsl/train/queue_runner.h"
#include "dsl/train/run_merger.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {

namespace {

// Errors that mean: the runtime was lost, not the program's fault.
bool is_preemption(const Error& e) { return e.code() == Code::kAborted || e.code() == Code::kUnavailable; }

bool is_preemption(const std::exception_ptr& p) {
  try {
    std::rethrow_exception(p);
  } catch (const Error& e) {
    return is_preemption(e);
  } catch (...) {
    return false;
  }
}

// Errors that end a loop cleanly: the end of the input, and StopIteration.
bool is_end(const std::exception_ptr& p) {
  try {
    std::rethrow_exception(p);
  } catch (const Error& e) {
    return e.code() == Code::kOutOfRange;
  } catch (const StopIteration&) {
    return true;
  } catch (...) {
    return false;
  }
}

constexpr const char kLost[] =
    "An error was raised. This may be due to a preemption in a connected worker or parameter server. The "
    "current session will be closed and a new session will be created. This error may also occur due to a "
    "gRPC failure caused by high memory or network bandwidth usage in the parameter servers. If this error "
    "occurs repeatedly, try increasing the number of parameter servers assigned to the job. Error: ";

}  // namespace

struct MonitoredSession::Impl {
  Impl(std::shared_ptr<SessionCreator> c, Hooks h, const MonitoredSessionOptions& opts, bool recover_)
      : creator(std::move(c)),
        hooks(std::move(h)),
        o(opts),
        clock(opts.clock ? *opts.clock : Clock::system()),
        recover(recover_),
        merger(hooks),
        unwinding(std::uncaught_exceptions()) {
    SLUICE_REQUIRE(creator, Code::kInvalidArgument, "MonitoredSession needs a session creator");
    for (const auto& hook : hooks)
      SLUICE_REQUIRE(hook, Code::kInvalidArgument, "MonitoredSession: a hook is null");
    Graph& g = creator->graph();
    graph_was_finalized = g.finalized();
    for (const auto& hook : hooks) hook->begin({g, clock});
    try {
      create();
    } catch (...) {
      // The graph stays open to the author, as it was.
      abandon_session();
      if (!graph_was_finalized) g.unsafe_unfinalize();
      throw;
    }
  }

  void create() {
    for (;;) {
      try {
        session = creator->create_session();
        stop = false;
        merger.new_session();
        coord = std::make_unique<Coordinator>(std::vector<Code>{});
        start_queue_runners(*session, *coord);
        for (const auto& hook : hooks) hook->after_create_session(*session, *coord);
        return;
      } catch (const Error& e) {
        if (!recover || !is_preemption(e)) throw;
        log_info(
            "An error was raised while a session was being created. This may be due to a preemption of a "
            "connected worker or parameter server. A new session will be created. Error: ",
            e.what());
      }
      close_session();  // what was made of it; nothing when there is none
    }
  }

  // Stops threads, closes the session. Throws what a thread reported.
  void close_session() {
    if (!session) return;
    std::exception_ptr failed;
    if (coord) {
      coord->request_stop();
      try {
        coord->join({.stop_grace_period_secs = o.stop_grace_period_secs, .ignore_live_threads = true});
      } catch (...) {
        failed = std::current_exception();
      }
    }
    session->close();
    coord.reset();  // stragglers end now that their runs are cancelled
    session.reset();
    if (!failed) return;
    if (recover && is_preemption(failed)) {
      try {
        std::rethrow_exception(failed);
      } catch (const Error& e) {
        log_error(
            "An error occurred when attempting to close the session. This may be due to a preemption in a "
            "connected worker or parameter server. Error: ",
            e.what());
      }
      return;
    }
    std::rethrow_exception(failed);
  }

  // The same on the way out of an error, which is the one to tell.
  void abandon_session() noexcept {
    try {
      close_session();
    } catch (const std::exception& e) {
      log_error("While a failed session was being closed: ", e.what());
    }
  }

  void lost(const Error& e) {
    log_info(kLost, e.what());
    close_session();
  }

  // Errors of a run: what a thread reported counts more when recovery can mend it.
  template <class F>
  void coordinated(F&& f) {
    try {
      f();
    } catch (const Error& e) {
      if (!is_preemption(e)) rethrow_or_preemption();
      throw;
    } catch (...) {
      rethrow_or_preemption();
      throw;
    }
  }
  void rethrow_or_preemption() {
    if (!coord) return;
    try {
      coord->raise_requested_exception();
    } catch (const Error& e) {
      if (is_preemption(e)) throw;
    } catch (...) {
    }
  }

  template <class F>
  void recoverable(F&& f) {
    for (;;) {
      try {
        if (!session) create();
        return coordinated(f);
      } catch (const Error& e) {
        if (!recover || !is_preemption(e)) throw;
        lost(e);
      }
    }
  }

  void hooked_run(std::vector<Array>& results, const std::vector<Output>& fetches,
                  const std::vector<Feed>& feeds, const std::vector<Node*>& targets,
                  const RunOptions& options, RunMetadata* metadata) {
    SLUICE_REQUIRE(!stop, Code::kFailedPrecondition, "Run called even after should_stop requested.");
    SessionRunContext context(fetches, feeds, targets, *session);
    merger.run(context, results, options, metadata ? *metadata : own_metadata);
    stop = stop || context.stop_requested();
  }

  bool should_stop() {
    if (closed) return true;
    try {
      if (!session) return true;
      coord->raise_requested_exception();
      if (coord->should_stop()) return true;
    } catch (const Error& e) {
      if (!recover) throw;
      if (!is_preemption(e)) return true;  // told by close
      lost(e);
      create();
      return false;
    } catch (...) {
      if (!recover) throw;
      return true;
    }
    return stop;
  }

  void close(bool clean) {
    SLUICE_REQUIRE(!closed, Code::kFailedPrecondition, "Session is already closed.");
    std::exception_ptr failed;
    if (clean && session) {
      try {
        for (const auto& hook : hooks) hook->end(*session);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    closed = true;
    if (failed || !clean) {
      abandon_session();
    } else {
      try {
        close_session();
      } catch (...) {
        failed = std::current_exception();
      }
    }
    if (!graph_was_finalized) creator->graph().unsafe_unfinalize();
    if (failed) std::rethrow_exception(failed);
  }

  const std::shared_ptr<SessionCreator> creator;
  const Hooks hooks;
  const MonitoredSessionOptions o;
  Clock& clock;
  const bool recover;
  RunMerger merger;
  RunMetadata own_metadata;
  std::unique_ptr<Session> session;
  std::unique_ptr<Coordinator> coord;  // ends before the session: its threads run on it
  bool graph_was_finalized = false, stop = false, closed = false;
  const int unwinding;  // exceptions on their way when this was made
};

MonitoredSession::MonitoredSession(std::shared_ptr<SessionCreator> creator, Hooks hooks,
                                   const MonitoredSessionOptions& o)
    : impl_(std::make_unique<Impl>(std::move(creator), std::move(hooks), o, true)) {}

MonitoredSession::MonitoredSession(Singular, std::shared_ptr<SessionCreator> creator, Hooks hooks,
                                   const MonitoredSessionOptions& o)
    : impl_(std::make_unique<Impl>(std::move(creator), std::move(hooks), o, false)) {}

MonitoredSession::~MonitoredSession() {
  if (impl_->closed) return;
  try {
    impl_->close(std::uncaught_exceptions() <= impl_->unwinding);
  } catch (const std::exception& e) {
    log_error("While a monitored session was being closed: ", e.what());
  }
}

std::vector<Array> MonitoredSession::run(const std::vector<Output>& fetches, const std::vector<Feed>& feeds,
                                         const std::vector<Node*>& targets, const RunOptions& options,
                                         RunMetadata* metadata) {
  std::vector<Array> results;
  run_into(results, fetches, feeds, targets, options, metadata);
  return results;
}

void MonitoredSession::run_into(std::vector<Array>& results, const std::vector<Output>& fetches,
                                const std::vector<Feed>& feeds, const std::vector<Node*>& targets,
                                const RunOptions& options, RunMetadata* metadata) {
  SLUICE_REQUIRE(!impl_->closed, Code::kFailedPrecondition, "Run called even after should_stop requested.");
  impl_->recoverable([&] { impl_->hooked_run(results, fetches, feeds, targets, options, metadata); });
}

void MonitoredSession::step(const std::function<void(StepContext&)>& fn) {
  SLUICE_REQUIRE(!impl_->closed, Code::kFailedPrecondition, "Run called even after should_stop requested.");
  impl_->recoverable([&] {
    StepContext context(*this, *impl_->session);
    fn(context);
  });
}

std::vector<Array> StepContext::run_with_hooks(const std::vector<Output>& fetches,
                                               const std::vector<Feed>& feeds,
                                               const std::vector<Node*>& targets) {
  // Not the recovering run: a lost runtime starts the whole step function again.
  std::vector<Array> results;
  owner_.impl_->hooked_run(results, fetches, feeds, targets, {}, nullptr);
  return results;
}

bool MonitoredSession::should_stop() { return impl_->should_stop(); }
void MonitoredSession::close() { impl_->close(true); }

void MonitoredSession::with(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    std::exception_ptr e = std::current_exception();
    const bool clean = is_end(e);
    if (!impl_->closed) impl_->close(clean);
    if (!clean) std::rethrow_exception(e);
    return;
  }
  if (!impl_->closed) close();
}

Graph& MonitoredSession::graph() const { return impl_->creator->graph(); }

Coordinator& MonitoredSession::coordinator() const {
  SLUICE_REQUIRE(impl_->coord, Code::kFailedPrecondition, "The session is closed.");
  return *impl_->coord;
}

Session& MonitoredSession::raw() const {
  SLUICE_REQUIRE(impl_->session, Code::kFailedPrecondition, "The session is closed.");
  return *impl_->session;
}

SingularMonitoredSession::SingularMonitoredSession(Graph& g, Hooks hooks, ChiefSessionCreatorOptions chief,
                                                   const MonitoredSessionOptions& o)
    : SingularMonitoredSession(std::make_shared<ChiefSessionCreator>(g, std::move(chief)), std::move(hooks),
                               o) {}

namespace {

using Options = MonitoredTrainingSessionOptions;

std::shared_ptr<SessionCreator> training_creator(Graph& g, const Options& o,
                                                 const std::shared_ptr<Scaffold>& scaffold) {
  if (!o.is_chief) {
    return std::make_shared<WorkerSessionCreator>(
        g, WorkerSessionCreatorOptions{.scaffold = scaffold,
                                       .master = o.master,
                                       .config = o.config,
                                       .max_wait_secs = o.max_wait_secs,
                                       .clock = o.clock});
  }
  return std::make_shared<ChiefSessionCreator>(g,
                                               ChiefSessionCreatorOptions{.scaffold = scaffold,
                                                                          .master = o.master,
                                                                          .config = o.config,
                                                                          .checkpoint_dir = o.checkpoint_dir,
                                                                          .clock = o.clock});
}

std::optional<int64_t> whole(const std::optional<double>& v) {
  return v ? std::optional(static_cast<int64_t>(*v)) : std::nullopt;
}

Hooks training_hooks(const Options& o, const std::shared_ptr<Scaffold>& scaffold) {
  if (!o.is_chief) return o.hooks;
  std::optional<double> save_secs = o.save_checkpoint_secs.value(),
                        save_steps = o.save_checkpoint_steps.value();
  if (!o.save_checkpoint_secs.given() && !o.save_checkpoint_steps.given()) save_secs = 600;
  std::optional<double> sum_secs = o.save_summaries_secs.value(), sum_steps = o.save_summaries_steps.value();
  if (!o.save_summaries_secs.given() && !o.save_summaries_steps.given()) sum_steps = 100;
  const std::string summary_dir = o.summary_dir.empty() ? o.checkpoint_dir : o.summary_dir;

  Hooks all = o.chief_only_hooks;
  if (!summary_dir.empty()) {
    if (auto steps = o.log_step_count_steps.value()) {
      all.push_back(std::make_shared<StepCounterHook>(
          StepCounterOptions{.every_n_steps = whole(steps), .output_dir = summary_dir}));
    }
    if (sum_secs || sum_steps) {
      all.push_back(std::make_shared<SummarySaverHook>(SummarySaverOptions{.save_steps = whole(sum_steps),
                                                                           .save_secs = sum_secs,
                                                                           .output_dir = summary_dir,
                                                                           .scaffold = scaffold}));
    }
  }
  if (!o.checkpoint_dir.empty() && (save_secs || save_steps)) {
    all.push_back(
        std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{.checkpoint_dir = o.checkpoint_dir,
                                                                     .save_secs = save_secs,
                                                                     .save_steps = whole(save_steps),
                                                                     .scaffold = scaffold,
                                                                     .save_graph_def = o.save_graph_def}));
  }
  all.insert(all.end(), o.hooks.begin(), o.hooks.end());
  return all;
}

}  // namespace

// One scaffold for creator and hooks.
MonitoredTrainingSession::MonitoredTrainingSession(Graph& g, const Options& o)
    : MonitoredTrainingSession(g, o, o.scaffold ? o.scaffold : std::make_shared<Scaffold>()) {}

MonitoredTrainingSession::MonitoredTrainingSession(Graph& g, const Options& o,
                                                   const std::shared_ptr<Scaffold>& scaffold)
    : MonitoredSession(training_creator(g, o, scaffold), training_hooks(o, scaffold),
                       {.stop_grace_period_secs = o.stop_grace_period_secs, .clock = o.clock}) {}

}  // namespace sluice::dsl::train
