#pragma once
// What the tests of the training loop share: a folder that goes away, a graph that counts, hooks that record
// and hooks that fail.

#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/train/coordinator.h"
#include "dsl/train/loop.h"
#include "dsl/train/more_hooks.h"
#include "runtime/io/events.h"
#include "tests/passes/util.h"

namespace sluice::dsl::train {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice_loop_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    FileWriterCache::clear();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& str() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

 private:
  std::string path_;
};

/// Its train op adds 1 to the global step and gives the new step, so a loss is a count of steps.
struct Counting {
  Graph g;
  Variable step = get_or_create_global_step(g);
  Tensor train_op = assign_add(step, 1, "train");
};

/// Notes each call as "<name>.<call>" in a list that several may share.
class Recorder : public SessionRunHook {
 public:
  Recorder(std::string name, std::vector<std::string>& calls, SessionRunArgs args = {})
      : args(std::move(args)), name_(std::move(name)), calls_(calls) {}
  void begin(const HookSetup&) override { note("begin"); }
  void after_create_session(Session&, Coordinator&) override { note("after_create_session"); }
  const SessionRunArgs* before_run(SessionRunContext&) override {
    note("before_run");
    return &args;
  }
  void after_run(SessionRunContext&, const SessionRunValues& values) override {
    note("after_run");
    seen.clear();
    for (size_t i = 0; i < values.size(); ++i) seen.push_back(values[i].item<double>());
    traced = static_cast<int>(values.metadata.steps.size());
  }
  void end(Session&) override { note("end"); }

  SessionRunArgs args;
  std::vector<double> seen;
  int traced = 0;

 protected:
  void note(const char* what) { calls_.push_back(name_ + "." + what); }

 private:
  std::string name_;
  std::vector<std::string>& calls_;
};

/// Throws errors before chosen runs, counted from 1 over the hook's life.
class Faults final : public SessionRunHook {
 public:
  explicit Faults(std::map<int, Code> faults) : faults_(std::move(faults)) {}
  void begin(const HookSetup&) override { ++begins; }
  void after_create_session(Session&, Coordinator&) override { ++sessions; }
  const SessionRunArgs* before_run(SessionRunContext&) override {
    const auto it = faults_.find(++runs);
    if (it != faults_.end()) throw_error(it->second, "injected");
    return nullptr;
  }
  void end(Session&) override { ++ends; }
  int begins = 0, sessions = 0, runs = 0, ends = 0;

 private:
  std::map<int, Code> faults_;
};

/// Calls a function after each run.
class AfterRun final : public SessionRunHook {
 public:
  explicit AfterRun(std::function<void(SessionRunContext&)> fn) : fn_(std::move(fn)) {}
  void after_run(SessionRunContext& c, const SessionRunValues&) override { fn_(c); }

 private:
  std::function<void(SessionRunContext&)> fn_;
};

inline std::shared_ptr<StopAtStepHook> stop_at(int64_t last_step) {
  return std::make_shared<StopAtStepHook>(StopAtStepOptions{.last_step = last_step});
}

/// Options of a session that writes nothing.
inline MonitoredTrainingSessionOptions quiet(Hooks hooks = {}) {
  MonitoredTrainingSessionOptions o;
  o.hooks = std::move(hooks);
  return o;
}

inline std::shared_ptr<ChiefSessionCreator> chief(Graph& g, ChiefSessionCreatorOptions o = {}) {
  return std::make_shared<ChiefSessionCreator>(g, std::move(o));
}

/// Every event in a folder's files, in the order of the files' names.
inline std::vector<runtime::io::Event> events_in(const std::string& dir) {
  std::vector<runtime::io::Event> all;
  for (const std::string& path : runtime::io::event_files(dir)) {
    runtime::io::EventsReader in(path);
    while (auto e = in.next()) all.push_back(*e);
  }
  return all;
}

/// (step, value) of the scalars with this tag.
inline std::vector<std::pair<int64_t, float>> scalars_in(const std::string& dir, const std::string& tag) {
  std::vector<std::pair<int64_t, float>> out;
  for (const auto& e : events_in(dir)) {
    if (e.kind != runtime::io::Event::Kind::kSummary) continue;
    for (const auto& v : runtime::io::parse_summary(e.data))
      if (v.tag == tag) out.emplace_back(e.step, v.simple);
  }
  return out;
}

/// Steps of the session logs with this status.
inline std::vector<int64_t> session_logs_in(const std::string& dir, SessionLog::Status status) {
  std::vector<int64_t> out;
  for (const auto& e : events_in(dir))
    if (e.kind == runtime::io::Event::Kind::kSessionLog && e.session_log.status == status)
      out.push_back(e.step);
  return out;
}

}  // namespace sluice::dsl::train
