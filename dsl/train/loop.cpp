#include "dsl/train/loop.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "dsl/train/global_step.h"
#include "dsl/train/more_hooks.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {

namespace {

std::atomic<int> chiefs_under_way{0};  // train() calls of chiefs in this process

class ChiefUnderWay {
 public:
  explicit ChiefUnderWay(bool chief) : counted_(chief) {
    if (counted_) ++chiefs_under_way;
  }
  ~ChiefUnderWay() { leave(); }
  /// Chiefs that are still under way.
  int leave() {
    if (!counted_) return chiefs_under_way;
    counted_ = false;
    return --chiefs_under_way;
  }

 private:
  bool counted_;
};

}  // namespace

TrainResult train(const Tensor& train_op, const std::string& logdir, const TrainOptions& o) {
  SLUICE_REQUIRE(train_op, Code::kInvalidArgument, "train: train_op is an empty tensor");
  if (logdir.empty() && o.is_chief) {
    SLUICE_REQUIRE(o.save_summaries_steps.value_or(0) == 0, Code::kInvalidArgument,
                   "logdir cannot be None when save_summaries_steps is not None");
    SLUICE_REQUIRE(o.save_checkpoint_secs.value_or(0) == 0, Code::kInvalidArgument,
                   "logdir cannot be None when save_checkpoint_secs is not None");
  }
  std::shared_ptr<StopOnSignalHook> signals;
  MonitoredTrainingSessionOptions m;
  m.master = o.master;
  m.is_chief = o.is_chief;
  m.checkpoint_dir = logdir;
  m.scaffold = o.scaffold;
  m.hooks = o.hooks;
  if (o.on_signal != OnSignal::kIgnore) m.hooks.push_back(signals = std::make_shared<StopOnSignalHook>());
  m.chief_only_hooks = o.chief_only_hooks;
  m.save_checkpoint_secs = Setting(o.save_checkpoint_secs);
  m.save_summaries_steps = o.save_summaries_steps ? Setting(*o.save_summaries_steps) : Setting::off();
  m.config = o.config;
  m.max_wait_secs = o.max_wait_secs;
  m.clock = o.clock;

  ChiefUnderWay chief(o.is_chief);
  TrainResult result;
  {
    MonitoredTrainingSession session(train_op.graph(), m);
    const std::vector<Output> fetches{train_op};
    std::vector<Array> values;
    session.with([&] {
      while (!session.should_stop()) {
        session.run_into(values, fetches);
        if (values[0].elements() == 1 && values[0].dtype() != DType::kString) {
          result.loss = values[0].item<double>();
        }
        ++result.steps;
      }
    });
  }
  if (signals) result.signal = signals->signal();
  // A chief that still saves ends the process itself.
  if (result.signal && o.on_signal == OnSignal::kExit && chief.leave() == 0) {
    static std::mutex exiting;
    exiting.lock();  // one thread calls exit; others wait here for the end
    log_info("Stopped by signal ", result.signal, ".");
    FileWriterCache::clear();
    std::exit(128 + result.signal);
  }
  return result;
}

int64_t global_step(Session& session, const Variable& step) {
  return session.run({step.snapshot()})[0].item<int64_t>();
}

int64_t global_step(Session& session) {
  const Variable step = get_global_step(session.graph());
  SLUICE_REQUIRE(step, Code::kNotFound, "The session's graph has no global step");
  return global_step(session, step);
}

}  // namespace sluice::dsl::train
