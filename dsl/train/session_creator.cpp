#include "dsl/train/session_creator.h"

#include "dsl/train/session_manager.h"
#include "runtime/local_master.h"

namespace sluice::dsl::train {

namespace {

SessionManager manager(Graph& g, Scaffold& scaffold, double recovery_wait_secs, Clock* clock) {
  return SessionManager(g, {.local_init_op = scaffold.local_init_op(),
                            .ready_op = scaffold.ready_op(),
                            .ready_for_local_init_op = scaffold.ready_for_local_init_op(),
                            .recovery_wait_secs = recovery_wait_secs,
                            .clock = clock});
}

}  // namespace

ChiefSessionCreator::ChiefSessionCreator(Graph& g, ChiefSessionCreatorOptions o) : g_(g), o_(std::move(o)) {
  if (!o_.scaffold) o_.scaffold = std::make_shared<Scaffold>();
}

std::unique_ptr<runtime::Session> ChiefSessionCreator::create_session() {
  Scaffold& scaffold = *o_.scaffold;
  scaffold.finalize(g_);
  PrepareOptions p;
  p.master = o_.master;
  p.config = o_.config;
  p.init_op = scaffold.init_op();
  p.init_feed_dict = scaffold.init_feed_dict();
  if (scaffold.init_fn()) p.init_fn = [&](runtime::Session& s) { scaffold.init_fn()(scaffold, s); };
  p.saver = scaffold.saver().get();
  p.checkpoint_dir = o_.checkpoint_dir;
  p.checkpoint_filename_with_path = o_.checkpoint_filename_with_path;
  return manager(g_, scaffold, 30, o_.clock).prepare_session(p);
}

WorkerSessionCreator::WorkerSessionCreator(Graph& g, WorkerSessionCreatorOptions o)
    : g_(g), o_(std::move(o)) {
  if (!o_.scaffold) o_.scaffold = std::make_shared<Scaffold>();
}

std::unique_ptr<runtime::Session> WorkerSessionCreator::create_session() {
  o_.scaffold->finalize(g_);
  const double wait = o_.recovery_wait_secs.value_or(runtime::is_local_master(o_.master) ? 0.05 : 30.0);
  return manager(g_, *o_.scaffold, wait, o_.clock).wait_for_session(o_.master, o_.config, o_.max_wait_secs);
}

}  // namespace sluice::dsl::train
