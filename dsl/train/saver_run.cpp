// Saver at run time: snapshot, writing (also beside the steps), the list of checkpoints, restoring.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <future>

#include "dsl/train/restore.h"
#include "dsl/train/resume_state.h"
#include "dsl/train/saver_internal.h"
#include "graph/support/file.h"
#include "graph/support/log.h"
#include "runtime/io/bundle.h"

namespace sluice::dsl::train {

using runtime::Array;
using runtime::VariableBuffer;
namespace fs = std::filesystem;
namespace io = runtime::io;

namespace {

constexpr int kBackgroundNice = 15;

KeepRules rules_of(const SaverOptions& o, const SaveCall& call) {
  return {.max_to_keep = o.max_to_keep,
          .every_n_hours = o.keep_checkpoint_every_n_hours,
          .relative_paths = o.save_relative_paths,
          .meta_graph_suffix = call.meta_graph_suffix,
          .latest_filename = call.latest_filename};
}

std::string resume_path(const std::string& path) { return path + ".resume"; }

}  // namespace

struct SaveHandle::State {
  std::shared_future<void> done;
  std::atomic<bool> told{false};  // somebody has waited: the saver need not tell again
};

std::string SaveHandle::wait() const {
  SLUICE_REQUIRE(state_, Code::kFailedPrecondition, "SaveHandle: there is no save to wait for");
  state_->done.wait();
  state_->told = true;
  state_->done.get();
  return path_;
}

bool SaveHandle::done() const {
  return !state_ || state_->done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::string Saver::path_of(const std::string& prefix, std::optional<int64_t> step) const {
  SLUICE_REQUIRE(!prefix.empty() && prefix.back() != '/', Code::kInvalidArgument, "Saver::save: '", prefix,
                 "' names no checkpoint");
  if (!step) return prefix;
  if (!o_.pad_step_number) return cat(prefix, "-", *step);
  char padded[32];
  std::snprintf(padded, sizeof padded, "-%08lld", static_cast<long long>(*step));
  return prefix + padded;
}

std::shared_ptr<Saver::Snapshot> Saver::snapshot(runtime::Session& session, const std::string& path,
                                                 const SaveCall& call) const {
  SLUICE_REQUIRE(built_, Code::kFailedPrecondition,
                 "`build()` should be called before save if defer_build==True");
  SLUICE_REQUIRE(&session.graph() == &g_, Code::kInvalidArgument, "Saver: the session runs another graph");
  SLUICE_REQUIRE(call.latest_filename.find('/') == std::string::npos && !call.latest_filename.empty(),
                 Code::kInvalidArgument,
                 "'latest_filename' must not contain path components: ", call.latest_filename);
  const std::string directory = directory_of(path);
  std::error_code ignored;
  SLUICE_REQUIRE(fs::is_directory(directory, ignored), Code::kNotFound, "Parent directory of ", path,
                 " doesn't exist, can't save.");
  if (call.write_state) {
    std::lock_guard lock(kept_->mutex);
    kept_->directory.enter(directory, rules_of(o_, call), now_of(o_));
  }
  auto s = std::make_shared<Snapshot>();
  s->path = path;
  s->call = call;
  if (call.write_meta_graph.value_or(o_.write_meta_graph)) {
    if (!meta_ || meta_version_ != g_.version()) {
      graph::MetaGraphInfo meta;
      if (restore_all_) meta.saver = info();
      meta_ = std::make_shared<std::string>(graph::meta_graph_to_bytes(g_, meta));
      meta_version_ = g_.version();
    }
    s->meta = meta_;
  }
  std::string absent;
  int count = 0;
  const std::vector<std::vector<Named>> groups = foreign_ ? std::vector<std::vector<Named>>{} : shards();
  s->num_shards = std::max<int>(1, static_cast<int>(groups.size()));
  for (size_t k = 0; k < groups.size(); ++k) {
    for (const auto& [name, v] : groups[k]) {
      const auto [container, key] = resource_key(v);
      const auto held = session.resources().find_variable(container, key);
      std::shared_ptr<const VariableBuffer> value = held ? held->read() : nullptr;
      if (!value) {
        absent += cat(count++ ? ", " : "", v.name());
        continue;
      }
      s->items.push_back({name, io::parse_slice_spec(slice_spec(v)), static_cast<int>(k), std::move(value)});
    }
  }
  SLUICE_REQUIRE(count == 0, Code::kFailedPrecondition, "Attempting to use uninitialized value ", absent,
                 ": ", count, " of ", vars_.size(), " variables to save are not initialized");
  if (o_.save_resume_state) s->resume = collect_resume_state(session);
  return s;
}

// Runs on the caller's thread or on one of its own; touches neither graph nor session.
void Saver::write(Snapshot& s) const {
  if (!s.items.empty() || !s.resume.empty() || o_.allow_empty) {
    io::BundleWriter writer(s.path, s.num_shards);
    for (Snapshot::Item& item : s.items) {
      const VariableBuffer& b = *item.value;
      io::TensorView view{.dtype = b.spec.dtype, .dims = b.spec.dims, .data = b.buffer.data()};
      Array plain;
      if (b.spec.dtype == DType::kString) {
        plain = b.strings ? *b.strings : Array(b.spec.dtype, b.spec.dims);
        view.strings = &plain.string_values();
      } else if (!b.spec.layout.plain()) {
        plain = Array(b.spec.dtype, b.spec.dims);
        runtime::reorder(b.spec.dtype, b.spec.dims, b.spec.layout, b.buffer.data(), {}, plain.data());
        view.data = plain.data();
      }
      if (item.slice.known)
        writer.add_slice(item.name, item.slice.full_dims, item.slice.slice, view, item.shard);
      else
        writer.add(item.name, view, item.shard);
      item.value.reset();
    }
    for (auto& [name, value] : s.resume) writer.add(name, value);
    writer.finish();
  }
  if (s.meta) write_file_atomically(s.path + "." + s.call.meta_graph_suffix, *s.meta);
  if (s.call.write_state) {
    std::lock_guard lock(kept_->mutex);
    kept_->directory.keep(s.path, rules_of(o_, s.call), now_of(o_));
  }
}

// The state that a graph's own saver does not know goes beside its checkpoint.
void Saver::save_by_nodes(runtime::Session& session, const std::string& path, const SaveCall& call) const {
  const std::shared_ptr<Snapshot> s = snapshot(session, path, call);
  // Beside values of another save it would be taken for theirs: the former one goes first.
  io::remove_checkpoint_files(resume_path(path));
  session.run({save_tensor_}, {{filename_, Array::strings({}, {path})}});
  if (!s->resume.empty()) {
    io::BundleWriter writer(resume_path(path));
    for (auto& [name, value] : s->resume) writer.add(name, value);
    writer.finish();
    s->resume.clear();
  }
  if (s->meta) write_file_atomically(path + "." + call.meta_graph_suffix, *s->meta);
  if (call.write_state) {
    std::lock_guard lock(kept_->mutex);
    kept_->directory.keep(path, rules_of(o_, call), now_of(o_));
  }
}

void Saver::throw_pending() {
  const SaveHandle pending = std::exchange(pending_, SaveHandle());
  if (!pending.state_) return;
  pending.state_->done.wait();
  if (!pending.state_->told) pending.wait();
}

void Saver::wait() { throw_pending(); }

std::string Saver::save(runtime::Session& session, const std::string& prefix,
                        std::optional<int64_t> global_step, const SaveCall& call) {
  throw_pending();
  const std::string path = path_of(prefix, global_step);
  if (foreign_) {
    save_by_nodes(session, path, call);
  } else {
    write(*snapshot(session, path, call));
  }
  return path;
}

SaveHandle Saver::save_async(runtime::Session& session, const std::string& prefix,
                             std::optional<int64_t> global_step, const SaveCall& call) {
  throw_pending();
  const std::string path = path_of(prefix, global_step);
  auto handle = [](const std::string& name, std::future<void> done) {
    SaveHandle h;
    h.path_ = name;
    h.state_ = std::make_shared<SaveHandle::State>();
    h.state_->done = done.share();
    return h;
  };
  if (foreign_) {
    // Its nodes run in the session, so there is nothing to run beside the steps.
    save_by_nodes(session, path, call);
    std::promise<void> done;
    done.set_value();
    return handle(path, done.get_future());
  }
  std::shared_ptr<Snapshot> s = snapshot(session, path, call);
  auto work = [this, s = std::move(s)]() mutable {
    // The steps have the processors; a thread that computes checksums takes what they leave.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kBackgroundNice);
    const std::shared_ptr<Snapshot> own = std::move(s);  // gone when this returns, not with the handle
    write(*own);
  };
  pending_ = handle(path, std::async(std::launch::async, std::move(work)));
  return pending_;
}

void Saver::restore(runtime::Session& session, const std::string& path) {
  SLUICE_REQUIRE(built_, Code::kFailedPrecondition,
                 "`build()` should be called before restore if defer_build==True");
  SLUICE_REQUIRE(!path.empty(), Code::kInvalidArgument, "Can't load save_path when it is None.");
  // Its error, if it has one, belongs to the next save.
  if (pending_.state_) pending_.state_->done.wait();
  if (!foreign_) {
    if (vars_.empty() && !o_.save_resume_state) return;
    if (vars_.empty() && !checkpoint_exists(path)) return;
    log_info("Restoring parameters from ", path);
    restore_variables(
        session, path, vars_,
        {.reshape = o_.reshape, .ignore_missing = o_.ignore_missing, .resume_state = o_.save_resume_state});
    return;
  }
  SLUICE_REQUIRE(checkpoint_exists(path), Code::kInvalidArgument,
                 "The passed save_path is not a valid checkpoint: ", path);
  log_info("Restoring parameters from ", path);
  std::vector<std::pair<std::string, Array>> state;
  if (o_.save_resume_state && checkpoint_exists(resume_path(path)))
    state = read_resume_state(io::BundleReader(resume_path(path)));
  session.run({}, {{filename_, Array::strings({}, {path})}}, {restore_all_});
  if (!state.empty()) apply_resume_state(session, state);
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::lock_guard lock(kept_->mutex);
  return kept_->directory.paths();
}

void Saver::set_last_checkpoints(const std::vector<std::string>& paths) {
  std::vector<std::pair<std::string, double>> all;
  for (const std::string& p : paths) {
    const std::vector<double> time = get_checkpoint_mtimes({p});
    all.emplace_back(p, time.empty() ? now_of(o_) : time[0]);
  }
  std::lock_guard lock(kept_->mutex);
  kept_->directory.set(std::move(all));
}

void Saver::recover_last_checkpoints(const std::vector<std::string>& paths) {
  std::vector<std::string> there;
  for (const std::string& p : paths)
    if (checkpoint_exists(p)) there.push_back(p);
  set_last_checkpoints(there);
}

}  // namespace sluice::dsl::train
