#pragma once
// train(): the training loop (graph-and-training §5.3, §6.3). It opens a MonitoredTrainingSession and runs
// the train op until a hook, the end of the input or a signal stops it. One thread; chief and workers of one
// runtime may train in threads of their own, each with its graph.
//
//   Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);
//   TrainResult r = train(train_op, "logs", {.hooks = {stop_at_1000}});

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/train/hooks.h"
#include "dsl/train/monitored_session.h"

namespace sluice::dsl::train {

/// What SIGINT and SIGTERM do to train(). With kExit and kReturn the step ends, a checkpoint is saved and the
/// hooks' `end` runs; then the process exits with 128 + the signal's number (130, 143), or train() returns. A
/// second signal kills at once. kIgnore leaves signals alone.
enum class OnSignal { kExit, kReturn, kIgnore };

struct TrainOptions {
  std::string master = {};  // "" a runtime of its own; "local:NAME" one shared in this process
  bool is_chief = true;
  std::shared_ptr<Scaffold> scaffold = nullptr;
  Hooks hooks = {};
  Hooks chief_only_hooks = {};
  std::optional<double> save_checkpoint_secs = 600;   // nullopt or 0: no checkpoints
  std::optional<int64_t> save_summaries_steps = 100;  // nullopt or 0: no summaries
  runtime::SessionOptions config = {};
  double max_wait_secs = 7200;  // a worker's wait for the chief
  OnSignal on_signal = OnSignal::kExit;
  Clock* clock = nullptr;
};

struct TrainResult {
  std::optional<double> loss;  // of the last completed step; none when no step ran
  int64_t steps = 0;           // that this call ran
  int signal = 0;              // that ended it, 0 for none
};

/// Runs `train_op` (a scalar whose computation trains, see create_train_op) until something stops it.
/// `logdir`
/// "" is none: a chief must then switch checkpoints and summaries off (InvalidArgument "logdir cannot be None
/// when save_summaries_steps is not None"). The end of the input ends it normally; any other error goes to
/// the caller, and the hooks' `end` is left out.
TrainResult train(const Tensor& train_op, const std::string& logdir, const TrainOptions& o = {});

/// The step of the session's graph. NotFound when it has none.
int64_t global_step(Session& session);
int64_t global_step(Session& session, const Variable& step);

}  // namespace sluice::dsl::train
