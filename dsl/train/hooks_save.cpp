// The hooks that write files: checkpoints, summaries, profiles.

#include <filesystem>

#include "dsl/train/hook_support.h"
#include "dsl/train/hooks.h"
#include "graph/graphdef.h"
#include "graph/support/log.h"
#include "runtime/trace.h"

namespace sluice::dsl::train {

namespace {

namespace fs = std::filesystem;
using Taken = std::map<std::string, const void*>;

std::shared_ptr<Taken> names_taken(Graph& g) {
  std::any& slot = g.attachment("train/checkpoint_names");
  if (!slot.has_value()) slot = std::make_shared<Taken>();
  return *std::any_cast<std::shared_ptr<Taken>>(&slot);
}

std::string join(const std::string& dir, const std::string& name) {
  return dir.empty() ? name : (fs::path(dir) / name).string();
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(path, ignored);
  return (ignored ? fs::path(path).lexically_normal() : whole).string();
}

}  // namespace

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverOptions o)
    : o_(std::move(o)),
      timer_(Every{.secs = o_.save_secs, .steps = o_.save_steps}),
      prefix_(join(o_.checkpoint_dir, o_.checkpoint_basename)) {
  log_info("Create CheckpointSaverHook.");
  SLUICE_REQUIRE(!o_.saver || !o_.scaffold, Code::kInvalidArgument,
                 "You cannot provide both saver and scaffold.");
  SLUICE_REQUIRE(!o_.checkpoint_dir.empty(), Code::kInvalidArgument,
                 "CheckpointSaverHook needs a checkpoint_dir");
}

CheckpointSaverHook::~CheckpointSaverHook() { release(); }

void CheckpointSaverHook::release() {
  if (!names_taken_) return;
  const auto it = names_taken_->find(absolute(prefix_));
  if (it != names_taken_->end() && it->second == this) names_taken_->erase(it);
  names_taken_.reset();
}

void CheckpointSaverHook::begin(const HookSetup& setup) {
  g_ = &setup.graph;
  release();
  names_taken_ = names_taken(setup.graph);
  const auto [it, fresh] = names_taken_->emplace(absolute(prefix_), this);
  if (!fresh) {
    names_taken_.reset();
    throw_error(
        Code::kAlreadyExists,
        cat("Two CheckpointSaverHooks save to '", prefix_,
            "': every step would be saved twice. Training sessions with a checkpoint_dir bring one along; "
            "switch it off by save_checkpoint_secs = Setting::off(), or give yours another directory."));
  }
  writer_ = FileWriterCache::get(o_.checkpoint_dir);
  step_ = require_global_step_read(setup.graph, "CheckpointSaverHook");
  args_.fetches = {step_};
  timer_.use(setup.clock);
  for (const auto& l : o_.listeners) l->begin();
}

Saver& CheckpointSaverHook::saver() {
  if (o_.saver) return *o_.saver;
  if (o_.scaffold && o_.scaffold->saver()) return *o_.scaffold->saver();
  auto& all = savers(*g_);
  const char* key = graph::keys::kSavers;
  SLUICE_REQUIRE(!all.empty(), Code::kFailedPrecondition, "No items in collection ", key,
                 ". Please add a saver to the collection or provide a saver or scaffold.");
  SLUICE_REQUIRE(all.size() == 1, Code::kFailedPrecondition, "More than one item in collection ", key,
                 ". Please indicate which one to use by passing it to the constructor.");
  return *all[0];
}

void CheckpointSaverHook::after_create_session(Session& session, Coordinator&) {
  const int64_t step = read_step(session, step_);
  std::error_code ignored;
  fs::create_directories(o_.checkpoint_dir, ignored);
  graph::write_graph_file(*g_, join(o_.checkpoint_dir, "graph.pbtxt"), graph::FileFormat::kText);
  graph::MetaGraphInfo meta;
  meta.saver = saver().info();
  writer_->add_graph(*g_);
  writer_->add_meta_graph(*g_, meta);
  const std::string path = cat(prefix_, "-", step);
  const std::vector<std::string> kept = saver().last_checkpoints();
  if (!kept.empty() && absolute(kept.back()) == absolute(path) && checkpoint_exists(path)) {
    log_info("The session starts from ", path, ", which need not be saved again.");
  } else {
    save(session, step, false);
  }
  timer_.update(step);
}

void CheckpointSaverHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  if (!timer_.should_trigger(values[0].item<int64_t>() + o_.steps_per_run)) return;
  const int64_t step = read_step(context.session(), step_);
  if (!timer_.should_trigger(step)) return;
  timer_.update(step);
  if (save(context.session(), step, o_.background && o_.listeners.empty())) context.request_stop();
}

void CheckpointSaverHook::end(Session& session) {
  const int64_t step = read_step(session, step_);
  bool unsaved = timer_.last_triggered_step() != step;
  try {
    saver().wait();
  } catch (const std::exception& e) {
    log_error("A checkpoint written in the background failed: ", e.what());
    unsaved = true;
  }
  if (unsaved) save(session, step, false);
  for (const auto& l : o_.listeners) l->end(session, step);
  writer_->flush();
  release();
}

bool CheckpointSaverHook::save(Session& session, int64_t step, bool background) {
  if (!o_.listeners.empty()) log_info("Calling checkpoint listeners before saving checkpoint ", step, "...");
  for (const auto& l : o_.listeners) l->before_save(session, step);
  log_info("Saving checkpoints for ", step, " into ", prefix_, ".");
  const SaveCall call{.write_meta_graph = o_.save_graph_def};
  const std::string path = background ? saver().save_async(session, prefix_, step, call).path()
                                      : saver().save(session, prefix_, step, call);
  SessionLog log;
  log.status = SessionLog::Status::kCheckpoint;
  log.checkpoint_path = prefix_;
  writer_->add_session_log(log, step);
  if (o_.listeners.empty()) return false;
  log_info("Calling checkpoint listeners after saving checkpoint ", step, "...");
  bool stop = false;
  for (const auto& l : o_.listeners) {
    if (!l->after_save(session, step, path)) continue;
    log_info("A CheckpointSaverListener requested that training be stopped.");
    stop = true;
  }
  return stop;
}

SummarySaverHook::SummarySaverHook(SummarySaverOptions o)
    : o_(std::move(o)),
      timer_(Every{.secs = o_.save_secs, .steps = o_.save_steps}),
      writer_(o_.summary_writer) {
  SLUICE_REQUIRE((o_.scaffold != nullptr) != !o_.summary_op.empty(), Code::kInvalidArgument,
                 "Exactly one of scaffold or summary_op must be provided.");
}

void SummarySaverHook::begin(const HookSetup& setup) {
  if (!writer_ && !o_.output_dir.empty()) writer_ = FileWriterCache::get(o_.output_dir);
  step_ = require_global_step_read(setup.graph, "SummarySaverHook");
  plain_.fetches = {step_};
  with_summary_.fetches.clear();
  next_step_.reset();
  timer_.use(setup.clock);
}

const SessionRunArgs* SummarySaverHook::before_run(SessionRunContext&) {
  due_ = !next_step_ || timer_.should_trigger(*next_step_);
  if (!due_) return &plain_;
  // Only now: a scaffold has its summary op when the session is made.
  with_summary_.fetches = {step_};
  if (o_.scaffold) {
    if (Tensor t = o_.scaffold->summary_op()) with_summary_.fetches.push_back(t);
  }
  for (const Tensor& t : o_.summary_op) with_summary_.fetches.push_back(t);
  return &with_summary_;
}

void SummarySaverHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  if (!writer_) return;
  int64_t step = values[0].item<int64_t>() + 1;
  if (due_) step = read_step(context.session(), step_);
  if (!next_step_) {
    SessionLog log;
    log.status = SessionLog::Status::kStart;
    writer_->add_session_log(log, step);
  }
  if (due_) {
    timer_.update(step);
    for (size_t i = 1; i < values.size(); ++i) writer_->add_summary(values[i], step);
  }
  next_step_ = step + 1;
}

void SummarySaverHook::end(Session&) {
  if (writer_) writer_->flush();
}

ProfilerHook::ProfilerHook(ProfilerOptions o)
    : o_(std::move(o)), timer_(Every{.secs = o_.save_secs, .steps = o_.save_steps}) {}

void ProfilerHook::begin(const HookSetup& setup) {
  step_ = require_global_step_read(setup.graph, "ProfilerHook");
  plain_.fetches = traced_.fetches = {step_};
  traced_.options = RunOptions{.trace_level = runtime::TraceLevel::kFull};
  next_step_.reset();
  timer_.use(setup.clock);
  if (!writer_ && !o_.output_dir.empty()) writer_ = FileWriterCache::get(o_.output_dir);
}

const SessionRunArgs* ProfilerHook::before_run(SessionRunContext&) {
  due_ = next_step_ && timer_.should_trigger(*next_step_);
  return due_ ? &traced_ : &plain_;
}

void ProfilerHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t stale = values[0].item<int64_t>();
  if (!next_step_) timer_.update(stale);
  int64_t step = stale + 1;
  if (due_) {
    step = read_step(context.session(), step_);
    timer_.update(step);
    const std::string path = join(o_.output_dir, cat("timeline-", step, ".json"));
    log_info("Saving timeline for ", step, " into '", path, "'.");
    runtime::write_chrome_trace(values.metadata, path);
    if (writer_) writer_->add_run_metadata(values.metadata, cat("step_", step), step);
  }
  next_step_ = step + 1;
}

}  // namespace sluice::dsl::train
