#include "dsl/train/session_manager.h"

#include "dsl/train/checkpoint_state.h"
#include "graph/support/log.h"
#include "runtime/local_master.h"

namespace sluice::dsl::train {

using runtime::Session;

namespace {

std::string name_or_none(const Node* n) { return n ? n->name() : std::string("None"); }

}  // namespace

SessionManager::SessionManager(Graph& g, const SessionManagerOptions& o)
    : g_(g), o_(o), clock_(o.clock ? *o.clock : Clock::system()) {}

std::unique_ptr<Session> SessionManager::open(const std::string& master, runtime::SessionOptions config) {
  if (auto shared = runtime::resolve_master(master)) config.resources = std::move(shared);
  return std::make_unique<Session>(g_, std::move(config));
}

std::pair<std::unique_ptr<Session>, bool> SessionManager::restore_checkpoint(const PrepareOptions& o) {
  SLUICE_REQUIRE(o.checkpoint_dir.empty() || o.checkpoint_filename_with_path.empty(), Code::kInvalidArgument,
                 "Can not provide both checkpoint_dir and checkpoint_filename_with_path.");
  std::unique_ptr<Session> session = open(o.master, o.config);
  if (!o.saver) return {std::move(session), false};
  try {
    o.saver->wait();  // what a lost session was still writing may be the latest
  } catch (const Error& e) {
    log_error("A checkpoint written in the background failed: ", e.what());
  }
  if (!o.checkpoint_filename_with_path.empty()) {
    o.saver->restore(*session, o.checkpoint_filename_with_path);
    return {std::move(session), true};
  }
  if (o.checkpoint_dir.empty()) return {std::move(session), false};
  std::optional<CheckpointState> state = get_checkpoint_state(o.checkpoint_dir);
  for (double waited = 0; !state || state->model_checkpoint_path.empty();) {
    if (!o.wait_for_checkpoint || waited >= o.max_wait_secs) return {std::move(session), false};
    log_info("Waiting for checkpoint to be available.");
    clock_.sleep(o_.recovery_wait_secs);
    waited += o_.recovery_wait_secs;
    state = get_checkpoint_state(o.checkpoint_dir);
  }
  o.saver->restore(*session, state->model_checkpoint_path);
  o.saver->recover_last_checkpoints(state->all_model_checkpoint_paths);
  return {std::move(session), true};
}

// TensorFlow's rule: nothing, an int32 or an empty value means ready; older ready ops assert instead.
SessionManager::Probe SessionManager::probe(const Tensor& op, Session& session, const char* what) {
  if (!op) return {};
  try {
    const runtime::Array value = session.run({op})[0];
    if (value.dtype() == DType::kInt32 || value.elements() == 0) return {};
    std::string names;
    if (value.dtype() == DType::kString) {
      for (const std::string& n : value.string_values()) names += (names.empty() ? "" : ", ") + n;
    } else {
      names = value.str();
    }
    return {false, "Variables not initialized: " + names};
  } catch (const Error& e) {
    if (e.code() != Code::kFailedPrecondition) throw;
    if (std::string(e.what()).find("uninitialized") == std::string::npos) {
      log_warning(what, " : error [", e.what(), "]");
      throw;
    }
    return {false, e.what()};
  }
}

SessionManager::Probe SessionManager::try_run_local_init_op(Session& session) {
  if (!o_.local_init_op) return {};
  Probe ready = probe(o_.ready_for_local_init_op, session, "Model not ready for local init");
  if (!ready.ready) return ready;
  log_info("Running local_init_op.");
  session.run({}, {}, {o_.local_init_op}, o_.local_init_run_options);
  log_info("Done running local_init_op.");
  return {};
}

std::unique_ptr<Session> SessionManager::prepare_session(const PrepareOptions& o) {
  auto [session, restored] = restore_checkpoint(o);
  const char* init_fn = o.init_fn ? "given" : "None";
  if (!restored) {
    SLUICE_REQUIRE(o.init_op || o.init_fn || o_.local_init_op, Code::kFailedPrecondition,
                   "Model is not initialized and no init_op or init_fn or local_init_op was given");
    if (o.init_op) session->run({}, o.init_feed_dict, {o.init_op});
    if (o.init_fn) o.init_fn(*session);
  }
  const Probe local = try_run_local_init_op(*session);
  SLUICE_REQUIRE(local.ready, Code::kFailedPrecondition,
                 "Init operations did not make model ready for local_init.  Init op: ",
                 name_or_none(o.init_op), ", init fn: ", init_fn, ", error: ", local.message);
  const Probe ready = probe(o_.ready_op, *session, "Model not ready");
  SLUICE_REQUIRE(ready.ready, Code::kFailedPrecondition,
                 "Init operations did not make model ready.  Init op: ", name_or_none(o.init_op),
                 ", init fn: ", init_fn, ", local_init_op: ", name_or_none(o_.local_init_op),
                 ", error: ", ready.message);
  return std::move(session);
}

std::pair<std::unique_ptr<Session>, bool> SessionManager::recover_session(const PrepareOptions& o) {
  auto [session, restored] = restore_checkpoint(o);
  const Probe local = try_run_local_init_op(*session);
  if (!restored) return {std::move(session), false};
  const std::string& from = o.checkpoint_dir.empty() ? o.checkpoint_filename_with_path : o.checkpoint_dir;
  if (!local.ready) {
    log_info("Restoring model from ", from, " did not make model ready for local init: ", local.message);
    return {std::move(session), false};
  }
  const Probe ready = probe(o_.ready_op, *session, "Model not ready");
  if (!ready.ready) {
    log_info("Restoring model from ", from, " did not make model ready: ", ready.message);
    return {std::move(session), false};
  }
  log_info("Restored model from ", from);
  return {std::move(session), true};
}

std::unique_ptr<Session> SessionManager::wait_for_session(const std::string& master,
                                                          const runtime::SessionOptions& config,
                                                          double max_wait_secs) {
  const double until = clock_.now() + max_wait_secs;
  for (;;) {
    std::unique_ptr<Session> session = open(master, config);
    const Probe local = try_run_local_init_op(*session);
    Probe ready;
    if (local.ready) {
      ready = probe(o_.ready_op, *session, "Model not ready");
      if (ready.ready) return session;
    }
    session->close();
    SLUICE_REQUIRE(until - clock_.now() - o_.recovery_wait_secs >= 0, Code::kDeadlineExceeded,
                   "Session was not ready after waiting ", static_cast<int64_t>(max_wait_secs), " secs.");
    log_info("Waiting for model to be ready.  Ready_for_local_init_op:  ",
             local.ready ? std::string("None") : local.message,
             ", ready: ", ready.ready ? std::string("None") : ready.message);
    // The session goes before the wait, so that nothing of it is held meanwhile; the shared state stays with
    // its other holders.
    session.reset();
    clock_.sleep(o_.recovery_wait_secs);
  }
}

}  // namespace sluice::dsl::train
