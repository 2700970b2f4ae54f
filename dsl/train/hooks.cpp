#include "dsl/train/hooks.h"

#include <cmath>
#include <cstdio>

#include "dsl/train/coordinator.h"
#include "dsl/train/global_step.h"
#include "dsl/train/hook_support.h"
#include "dsl/train/monitored_session.h"
#include "graph/support/log.h"
#include "runtime/io/events.h"

namespace sluice::dsl::train {

StopAtStepHook::StopAtStepHook(const StopAtStepOptions& o)
    : num_steps_(o.num_steps), last_step_(o.last_step) {
  SLUICE_REQUIRE(o.num_steps || o.last_step, Code::kInvalidArgument,
                 "One of num_steps or last_step must be specified.");
  SLUICE_REQUIRE(!o.num_steps || !o.last_step, Code::kInvalidArgument,
                 "Only one of num_steps or last_step can be specified.");
}

void StopAtStepHook::begin(const HookSetup& setup) {
  step_ = require_global_step_read(setup.graph, "StopAtStepHook");
  args_.fetches = {step_};
}

void StopAtStepHook::after_create_session(Session& session, Coordinator& coord) {
  const int64_t now = read_step(session, step_);
  if (!last_step_) last_step_ = now + *num_steps_;
  if (now < *last_step_) return;
  log_info("The global step is ", now, " and training stops at ", *last_step_, ": no step is run.");
  coord.request_stop();
}

void StopAtStepHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  // Read before or after the increment; only near the end it is worth another look.
  if (values[0].item<int64_t>() + 1 < *last_step_) return;
  if (read_step(context.session(), step_) >= *last_step_) context.request_stop();
}

NanTensorHook::NanTensorHook(const Tensor& loss, bool fail_on_nan_loss) : fail_(fail_on_nan_loss) {
  args_.fetches = {loss};
}

void NanTensorHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  if (!std::isnan(values[0].item<double>())) return;
  const char* message = "Model diverged with loss = NaN.";
  if (fail_) {
    log_error(message);
    throw NanLossDuringTrainingError();
  }
  log_warning(message);
  context.request_stop();
}

Tensor TensorRef::resolve(Graph& g) const {
  if (tensor) return tensor;
  if (name.find(':') != std::string::npos) return g.output(name);
  const Output first = g.output(name + ":0");
  SLUICE_REQUIRE(first.node->num_outputs() < 2, Code::kInvalidArgument, "Name ", name,
                 " is ambiguous, as this `Operation` has multiple outputs (at least 2).");
  return first;
}

LoggingTensorHook::LoggingTensorHook(LoggingTensorOptions o) : o_(std::move(o)) {
  const bool only_at_end = o_.at_end && !o_.every_n_iter && !o_.every_n_secs;
  SLUICE_REQUIRE(only_at_end || o_.every_n_iter.has_value() != o_.every_n_secs.has_value(),
                 Code::kInvalidArgument,
                 "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.");
  SLUICE_REQUIRE(!o_.every_n_iter || *o_.every_n_iter > 0, Code::kInvalidArgument,
                 "invalid every_n_iter=", o_.every_n_iter.value_or(0), ".");
  SLUICE_REQUIRE(o_.tensors.empty() != o_.tagged.empty(), Code::kInvalidArgument,
                 "LoggingTensorHook needs either `tensors` or `tagged`, and something in it");
  if (!only_at_end) timer_.emplace(Every{.secs = o_.every_n_secs, .steps = o_.every_n_iter});
}

void LoggingTensorHook::begin(const HookSetup& setup) {
  tags_.clear(), args_.fetches.clear();
  for (const TensorRef& t : o_.tensors) {
    tags_.push_back(t.tag());
    args_.fetches.push_back(t.resolve(setup.graph));
  }
  for (const auto& [tag, t] : o_.tagged) {
    tags_.push_back(tag);
    args_.fetches.push_back(t.resolve(setup.graph));
  }
  if (timer_) timer_->use(setup.clock), timer_->reset();
  iterations_ = 0;
}

const SessionRunArgs* LoggingTensorHook::before_run(SessionRunContext&) {
  due_ = timer_ && timer_->should_trigger(iterations_);
  return due_ ? &args_ : nullptr;
}

void LoggingTensorHook::after_run(SessionRunContext&, const SessionRunValues& values) {
  if (due_) {
    std::vector<Array> all;
    for (size_t i = 0; i < values.size(); ++i) all.push_back(values[i]);
    log(all);
  }
  ++iterations_;
}

void LoggingTensorHook::log(const std::vector<Array>& values) {
  std::optional<SecondOrStepTimer::Elapsed> elapsed;
  if (timer_) elapsed = timer_->update(iterations_);
  if (o_.formatter) {
    std::map<std::string, Array> named;
    for (size_t i = 0; i < values.size(); ++i) named[tags_[i]] = values[i];
    log_info(o_.formatter(named));
    return;
  }
  std::string line;
  for (size_t i = 0; i < values.size(); ++i) {
    line += cat(i ? ", " : "", tags_[i], " = ", value_text(values[i]));
  }
  if (elapsed) {
    char secs[40];
    std::snprintf(secs, sizeof secs, " (%.3f sec)", elapsed->secs);
    line += secs;
  }
  log_info(line);
}

void LoggingTensorHook::end(Session& session) {
  if (o_.at_end) log(session.run(args_.fetches));
}

StepCounterHook::StepCounterHook(StepCounterOptions o)
    : o_(std::move(o)), timer_(Every{.secs = o_.every_n_secs, .steps = o_.every_n_steps}) {}

void StepCounterHook::begin(const HookSetup& setup) {
  step_ = require_global_step_read(setup.graph, "StepCounterHook");
  args_.fetches = {step_};
  tag_ = get_global_step(setup.graph).name() + "/sec";
  if (!o_.summary_writer && !o_.output_dir.empty()) o_.summary_writer = FileWriterCache::get(o_.output_dir);
  timer_.use(setup.clock);
}

void StepCounterHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t stale = values[0].item<int64_t>();
  if (timer_.should_trigger(stale + 1)) {
    const int64_t step = read_step(context.session(), step_);
    if (timer_.should_trigger(step)) {
      const auto since = timer_.update(step);
      if (since && since->secs > 0) {
        const double rate = static_cast<double>(since->steps) / since->secs;
        log_info(tag_, ": ", general(rate));
        if (o_.summary_writer) {
          o_.summary_writer->add_summary(runtime::io::scalar_summary(tag_, static_cast<float>(rate)), step);
        }
      }
    }
  }
  if (last_stale_ == stale && warnings_ < 5) {
    ++warnings_;
    log_warning(
        "It seems that global step (tf.train.get_global_step) has not been increased. Current value "
        "(could be stable): ",
        stale, " vs previous value: ", *last_stale_,
        ". You could increase the global step by passing tf.train.get_global_step() to "
        "Optimizer.apply_gradients or Optimizer.minimize.");
  }
  last_stale_ = stale;
}

void FinalOpsHook::end(Session& session) {
  if (final_ops_.empty()) return;
  auto warn = [] {
    log_warning(
        "An OutOfRangeError or StopIteration exception is raised by the code in FinalOpsHook. This "
        "typically means the Ops running by the FinalOpsHook have a dependency back to some input "
        "source, which should not happen. For example, a metric is a `value_op` and an `update_op`: "
        "the update is run for each batch, and the value should read variables only. Please check the "
        "code executed in your FinalOpsHook.");
  };
  try {
    values_ = session.run(final_ops_, feeds_);
  } catch (const Error& e) {
    if (e.code() == Code::kOutOfRange) warn();
    throw;
  } catch (const StopIteration&) {
    warn();
    throw;
  }
}

void GlobalStepWaiterHook::begin(const HookSetup& setup) {
  clock_ = &setup.clock;
  step_ = require_global_step_read(setup.graph, "_GlobalStepWaiterHook");
}

const SessionRunArgs* GlobalStepWaiterHook::before_run(SessionRunContext& context) {
  if (started_ || wait_until_ <= 0) return nullptr;
  log_info("Waiting for global step ", wait_until_, " before starting training.");
  int64_t last_logged = 0;
  for (;;) {
    const int64_t now = read_step(context.session(), step_);
    if (now >= wait_until_) {
      started_ = true;
      return nullptr;
    }
    if (now - last_logged > 1000) {
      log_info("Waiting for global step ", wait_until_, " before starting training. Current step is ", now,
               ".");
      last_logged = now;
    }
    clock_->sleep(0.5);
  }
}

}  // namespace sluice::dsl::train
