#pragma once
// Hooks that training programs add by hand everywhere: progress on the terminal, early stopping, the best
// checkpoint kept apart, a time limit, memory and throughput, and signals. One thread, the session's.
//
//   train(train_op, "logs", {.hooks = {std::make_shared<ProgressHook>(ProgressOptions{.last_step = 1000,
//   .loss = loss})}});

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/train/hooks.h"

namespace sluice::dsl::train {

struct ProgressOptions {
  std::optional<int64_t> last_step = {};  // where the bar ends; none: no bar and no time left
  Tensor loss = {};                       // shown when given
  Every every = {.secs = 0.5};            // on a terminal; elsewhere lines come every `line_secs`
  double line_secs = 10;
  std::optional<bool> terminal = {};               // default: whether stderr is one
  std::function<void(std::string_view)> out = {};  // default: stderr
};

/// "[=====>     ]  500/1000  50%  123.4 steps/s  0:04 left  loss 0.25", redrawn in place on a terminal, as
/// plain lines elsewhere.
class ProgressHook final : public SessionRunHook {
 public:
  explicit ProgressHook(ProgressOptions o = {});
  void begin(const HookSetup& setup) override;
  void after_create_session(Session& session, Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext&) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

 private:
  void show(int64_t step, const Array* loss);
  ProgressOptions o_;
  bool terminal_;
  SecondOrStepTimer timer_;
  Clock* clock_ = nullptr;
  Tensor step_;
  SessionRunArgs plain_, with_loss_;
  double started_ = 0;
  int64_t first_step_ = 0, seen_step_ = 0;
  size_t width_ = 0;  // of the line on the screen
  bool due_ = false, shown_ = false;
};

struct EarlyStoppingOptions {
  Tensor metric = {};                                           // fetched with the run when due, or
  std::function<double(Session&, int64_t step)> evaluate = {};  // called after it
  Every every = {.steps = 100};
  int patience = 5;      // looks without an improvement before training stops
  double min_delta = 0;  // what counts as one
  bool higher_is_better = false;
  int64_t min_steps = 0;  // nothing stops before this step
};

/// Stops when a number has not got better for some looks. NaN is never better.
class EarlyStoppingHook final : public SessionRunHook {
 public:
  /// InvalidArgument unless exactly one of metric and evaluate is given and patience is positive.
  explicit EarlyStoppingHook(EarlyStoppingOptions o);
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  std::optional<double> best() const { return best_; }
  int64_t best_step() const { return best_step_; }
  bool stopped() const { return stopped_; }

 private:
  EarlyStoppingOptions o_;
  SecondOrStepTimer timer_;
  Tensor step_;
  SessionRunArgs plain_, with_metric_;
  std::optional<double> best_;
  int64_t best_step_ = 0, next_step_ = 0;
  int looks_ = 0;
  bool due_ = false, stopped_ = false;
};

struct BestCheckpointOptions {
  std::string export_dir;
  std::function<double(Session&, int64_t step)> metric = {};  // measured after each save
  bool higher_is_better = false;
  int max_to_keep = 1;
};

/// Copies each checkpoint that is better than all before it into a folder of its own, with a state file
/// there, so that latest_checkpoint(export_dir) is the best. The best number survives restarts (file
/// `best_metric`).
class BestCheckpointExporter final : public CheckpointSaverListener {
 public:
  /// InvalidArgument without a folder or a metric.
  explicit BestCheckpointExporter(BestCheckpointOptions o);
  bool after_save(Session& session, int64_t step, const std::string& path) override;
  std::optional<double> best() const { return best_; }

 private:
  BestCheckpointOptions o_;
  std::optional<double> best_;
};

/// Stops after so many seconds, counted from the session's first start.
class TimeLimitHook final : public SessionRunHook {
 public:
  explicit TimeLimitHook(double seconds);
  void begin(const HookSetup& setup) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  double seconds_, started_ = 0;
  Clock* clock_ = nullptr;
};

struct ResourceUsageOptions {
  Every every = {.steps = 100};
  int64_t batch_size = 0;       // examples a step; 0: steps only
  std::string output_dir = {};  // "": only logs
};

/// Logs steps and examples a second, and the process's memory now and at its peak; writes them as scalars
/// "usage/steps_per_sec", "usage/examples_per_sec", "usage/memory_bytes", "usage/peak_memory_bytes".
class ResourceUsageHook final : public SessionRunHook {
 public:
  explicit ResourceUsageHook(ResourceUsageOptions o = {});
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  ResourceUsageOptions o_;
  SecondOrStepTimer timer_;
  Tensor step_;
  SessionRunArgs args_;
  std::shared_ptr<FileWriter> writer_;
};

/// Bytes of memory this process has in use, and the most it has had; 0 where the system does not say.
struct MemoryUse {
  int64_t now = 0, peak = 0;
};
MemoryUse memory_use();

/// Stops after the step during which SIGINT or SIGTERM came; a second signal ends the process at once. While
/// any such hook lives its handlers are installed; the former ones come back afterwards.
class StopOnSignalHook final : public SessionRunHook {
 public:
  StopOnSignalHook();
  ~StopOnSignalHook() override;
  void after_create_session(Session& session, Coordinator& coord) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  /// The signal that came, 0 for none.
  int signal() const;
};

}  // namespace sluice::dsl::train
