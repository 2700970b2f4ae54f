#pragma once
// TensorFlow's hooks (graph-and-training §6.6); more_hooks.h has those that people add by hand everywhere.
// Make them with std::make_shared and give them to a monitored session or to train(). "At step n" means the
// global step after the run. Hooks that need a step throw FailedPrecondition "Global step should be created
// to use …" in begin. One thread, the session's.
//
//   auto stop = std::make_shared<StopAtStepHook>(StopAtStepOptions{.last_step = 1000});
//   train(train_op, "logs", {.hooks = {stop, std::make_shared<NanTensorHook>(loss)}});

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/train/scaffold.h"
#include "dsl/train/session_run_hook.h"
#include "dsl/train/summary_writer.h"
#include "dsl/train/timer.h"

namespace sluice::dsl::train {

struct StopAtStepOptions {
  std::optional<int64_t> num_steps = {};  // steps of this process, or
  std::optional<int64_t> last_step = {};  // the step to stop at
};

/// Stops at a step. A run that starts at or past it stops before its first step.
class StopAtStepHook final : public SessionRunHook {
 public:
  /// InvalidArgument "One of num_steps or last_step must be specified." or "Only one of …".
  explicit StopAtStepHook(const StopAtStepOptions& o);
  void begin(const HookSetup& setup) override;
  void after_create_session(Session& session, Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  std::optional<int64_t> num_steps_, last_step_;
  Tensor step_;
  SessionRunArgs args_;
};

class NanLossDuringTrainingError : public Error {
 public:
  NanLossDuringTrainingError() : Error(Code::kInvalidArgument, "NaN loss during training.") {}
};

/// Fails with NanLossDuringTrainingError, or stops, when the loss is NaN. Infinity is not NaN.
class NanTensorHook final : public SessionRunHook {
 public:
  explicit NanTensorHook(const Tensor& loss, bool fail_on_nan_loss = true);
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  bool fail_;
  SessionRunArgs args_;
};

/// A tensor, or its name ("loss:0", or "loss" of an op with one output).
struct TensorRef {
  TensorRef(const Tensor& t) : tensor(t) {}
  TensorRef(Output o) : tensor(o) {}
  TensorRef(const char* n) : name(n) {}
  TensorRef(std::string n) : name(std::move(n)) {}
  Tensor tensor;
  std::string name;
  /// NotFound for an unknown name; InvalidArgument "Name … is ambiguous …" for an op of several outputs.
  Tensor resolve(Graph& g) const;
  std::string tag() const { return tensor ? tensor.name() : name; }
};

struct LoggingTensorOptions {
  std::vector<TensorRef> tensors = {};           // in this order, under their names, or
  std::map<std::string, TensorRef> tagged = {};  // sorted by tag
  std::optional<int64_t> every_n_iter = {};
  std::optional<double> every_n_secs = {};
  bool at_end = false;
  std::function<std::string(const std::map<std::string, Array>&)> formatter = {};
};

/// Logs "tag = value, tag2 = value (1.234 sec)". Counts runs of its own, not global steps.
class LoggingTensorHook final : public SessionRunHook {
 public:
  explicit LoggingTensorHook(LoggingTensorOptions o);
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

 private:
  void log(const std::vector<Array>& values);
  LoggingTensorOptions o_;
  std::optional<SecondOrStepTimer> timer_;  // none: at the end only
  std::vector<std::string> tags_;
  SessionRunArgs args_;
  int64_t iterations_ = 0;
  bool due_ = false, logged_ = false;
};

struct StepCounterOptions {
  std::optional<int64_t> every_n_steps = 100;
  std::optional<double> every_n_secs = {};
  std::string output_dir = {};                           // "": only logs, unless there is a writer
  std::shared_ptr<FileWriter> summary_writer = nullptr;  // shared with other hooks of the folder
};

/// Steps a second as "global_step/sec", logged and in the folder's events.
class StepCounterHook final : public SessionRunHook {
 public:
  explicit StepCounterHook(StepCounterOptions o = {});
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  StepCounterOptions o_;
  SecondOrStepTimer timer_;
  Tensor step_;
  std::string tag_;
  SessionRunArgs args_;
  std::optional<int64_t> last_stale_;
  int warnings_ = 0;
};

/// Told about checkpoints.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  virtual void begin() {}
  virtual void before_save(Session&, int64_t step) { (void)step; }
  /// `path` is the checkpoint's prefix. True asks to stop training; not heard at the first and the last save.
  virtual bool after_save(Session&, int64_t step, const std::string& path) {
    (void)step, (void)path;
    return false;
  }
  virtual void end(Session&, int64_t step) { (void)step; }
};

struct CheckpointSaverOptions {
  std::string checkpoint_dir;
  std::optional<double> save_secs = {};  // one of the two
  std::optional<int64_t> save_steps = {};
  std::shared_ptr<Saver> saver = nullptr;  // one of the two; neither: the graph's SAVERS
  std::shared_ptr<Scaffold> scaffold = nullptr;
  std::string checkpoint_basename = "model.ckpt";
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners =
      {};  // shared: their makers look into them
  bool save_graph_def = true;
  int64_t steps_per_run = 1;
  /// Saves by the timer are written beside the next steps. Not where listeners wait for the files; the first
  /// and the last save are always complete when they return.
  bool background = true;
};

/// Saves when the session is made (unless it was restored from that very checkpoint), then by its timer, and
/// at the end unless the last step is saved. Also writes graph.pbtxt, and the graph into the folder's events.
class CheckpointSaverHook final : public SessionRunHook {
 public:
  /// InvalidArgument "You cannot provide both saver and scaffold.", and the timer's errors.
  explicit CheckpointSaverHook(CheckpointSaverOptions o);
  ~CheckpointSaverHook() override;
  /// AlreadyExists when another hook of this graph saves under the same name: they would save every step
  /// twice.
  void begin(const HookSetup& setup) override;
  void after_create_session(Session& session, Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

 private:
  Saver& saver();
  bool save(Session& session, int64_t step, bool background);
  void release();

  CheckpointSaverOptions o_;
  SecondOrStepTimer timer_;
  std::string prefix_;
  Graph* g_ = nullptr;
  // Who saves under which name; the graph's, and shared because a hook may outlive the graph.
  std::shared_ptr<std::map<std::string, const void*>> names_taken_;
  Tensor step_;
  SessionRunArgs args_;
  std::shared_ptr<FileWriter> writer_;
};

struct SummarySaverOptions {
  std::optional<int64_t> save_steps = {};  // one of the two
  std::optional<double> save_secs = {};
  std::string output_dir = {};  // or a writer
  std::shared_ptr<FileWriter> summary_writer = nullptr;
  std::shared_ptr<Scaffold> scaffold = nullptr;  // one of the two
  std::vector<Tensor> summary_op = {};
};

/// Saves summaries at the first run and then by its timer.
class SummarySaverHook final : public SessionRunHook {
 public:
  /// InvalidArgument "Exactly one of scaffold or summary_op must be provided.", and the timer's errors.
  explicit SummarySaverHook(SummarySaverOptions o);
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

 private:
  SummarySaverOptions o_;
  SecondOrStepTimer timer_;
  Tensor step_;
  SessionRunArgs plain_, with_summary_;
  std::shared_ptr<FileWriter> writer_;
  std::optional<int64_t> next_step_;
  bool due_ = false;
};

struct ProfilerOptions {
  std::optional<int64_t> save_steps = {};  // one of the two
  std::optional<double> save_secs = {};
  std::string output_dir = {};
  bool show_dataflow = true;  // kept for its name's sake: Chrome traces of plans have no flow arrows
  bool show_memory = false;   // bytes of each step's outputs stand in its arguments either way
};

/// Traces a run now and then, never the first: `timeline-<step>.json` for chrome://tracing, and RunMetadata
/// tagged "step_<n>" in the folder's events.
class ProfilerHook final : public SessionRunHook {
 public:
  explicit ProfilerHook(ProfilerOptions o);
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  ProfilerOptions o_;
  SecondOrStepTimer timer_;
  Tensor step_;
  SessionRunArgs plain_, traced_;
  std::shared_ptr<FileWriter> writer_;
  std::optional<int64_t> next_step_;
  bool due_ = false;
};

/// Runs ops when the session ends and keeps their values.
class FinalOpsHook final : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Output> final_ops, std::vector<Feed> feeds = {})
      : final_ops_(std::move(final_ops)), feeds_(std::move(feeds)) {}
  void end(Session& session) override;
  const std::vector<Array>& final_ops_values() const { return values_; }

 private:
  std::vector<Output> final_ops_;
  std::vector<Feed> feeds_;
  std::vector<Array> values_;
};

/// Holds back the first run until the global step has reached a number; looks twice a second.
class GlobalStepWaiterHook final : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step) : wait_until_(wait_until_step) {}
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;

 private:
  int64_t wait_until_;
  Clock* clock_ = nullptr;
  Tensor step_;
  bool started_ = false;
};

/// Feeds every run what a function gives.
class FeedFnHook final : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<std::vector<Feed>()> feed_fn) : feed_fn_(std::move(feed_fn)) {}
  const SessionRunArgs* before_run(SessionRunContext&) override {
    args_.feeds = feed_fn_();
    return &args_;
  }

 private:
  std::function<std::vector<Feed>()> feed_fn_;
  SessionRunArgs args_;
};

}  // namespace sluice::dsl::train
