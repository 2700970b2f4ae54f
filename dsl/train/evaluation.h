#pragma once
// The evaluation loop: wait for checkpoints, restore each, run evaluation ops over the input, read the final
// values (TensorFlow's tf.contrib.training evaluation functions). One thread.
//
//   evaluate_repeatedly(g, "logs", {.eval_ops = {update}, .final_ops = {accuracy}, .hooks =
//   {stop_after_100}});

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/train/global_step.h"
#include "dsl/train/hooks.h"
#include "dsl/train/monitored_session.h"

namespace sluice::dsl::train {

/// Waits until the directory's latest checkpoint is another than `last` ("": any). nullopt when another wait
/// would pass `timeout_secs` (none: waits for ever).
std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir,
                                                   const std::string& last = {}, double seconds_to_sleep = 1,
                                                   std::optional<double> timeout_secs = {},
                                                   Clock& clock = Clock::system());

struct CheckpointsIteratorOptions {
  double min_interval_secs = 0;  // between one checkpoint and the next
  std::optional<double> timeout_secs = {};
  std::function<bool()> timeout_fn = {};  // asked at a timeout: true ends the iteration, false waits on
  Clock* clock = nullptr;
};

/// Each new latest checkpoint of a directory, as it appears.
class CheckpointsIterator {
 public:
  explicit CheckpointsIterator(std::string checkpoint_dir, CheckpointsIteratorOptions o = {});
  /// nullopt at the end.
  std::optional<std::string> next();

 private:
  std::string dir_, last_;
  CheckpointsIteratorOptions o_;
  Clock& clock_;
  std::optional<double> started_;
};

/// Counts evaluation steps: a local int64 variable `eval_step` in EVAL_STEP.
Variable get_or_create_eval_step(Graph& g, Loc loc = Loc::current());

/// Stops an evaluation after so many steps (none: at the end of the input).
class StopAfterNEvalsHook final : public SessionRunHook {
 public:
  explicit StopAfterNEvalsHook(std::optional<int64_t> num_evals, bool log_progress = true);
  void begin(const HookSetup& setup) override;
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  /// The count after the run; evaluate_once and evaluate_repeatedly set it.
  void set_evals_completed(const Tensor& t) { completed_ = t; }

 private:
  std::optional<int64_t> num_evals_;
  bool log_progress_;
  int64_t log_every_ = 1;
  Tensor completed_;
  SessionRunArgs args_;
};

struct SummaryAtEndOptions {
  std::string log_dir = {};  // or a writer
  std::shared_ptr<FileWriter> summary_writer = nullptr;
  Tensor summary_op = {};  // default: all summaries of the graph
  std::vector<Feed> feed_dict = {};
};

/// Writes a summary when the evaluation ends, at the global step.
class SummaryAtEndHook final : public SessionRunHook {
 public:
  explicit SummaryAtEndHook(SummaryAtEndOptions o);
  void begin(const HookSetup& setup) override;
  void end(Session& session) override;

 private:
  SummaryAtEndOptions o_;
  Tensor step_, summary_;
  std::shared_ptr<FileWriter> writer_;
};

struct EvaluateOptions {
  std::string master = {};
  std::shared_ptr<Scaffold> scaffold = nullptr;
  std::vector<Output> eval_ops = {};  // run at each step, with `eval_targets`
  std::vector<Node*> eval_targets = {};
  std::vector<Feed> feed_dict = {};
  std::vector<Output> final_ops = {};  // run once behind them
  std::vector<Feed> final_ops_feed_dict = {};
  Hooks hooks = {};
  runtime::SessionOptions config = {};
  // evaluate_repeatedly only:
  double eval_interval_secs = 60;
  std::optional<int64_t> max_number_of_evaluations = {};
  std::optional<double> timeout_secs = {};
  std::function<bool()> timeout_fn = {};
  Clock* clock = nullptr;
};

/// Evaluates one checkpoint; the values of the final ops. Without eval ops nothing is run but these.
std::vector<Array> evaluate_once(Graph& g, const std::string& checkpoint_path, const EvaluateOptions& o);
/// Evaluates every new checkpoint of a directory; the values of the last.
std::vector<Array> evaluate_repeatedly(Graph& g, const std::string& checkpoint_dir, const EvaluateOptions& o);

}  // namespace sluice::dsl::train
